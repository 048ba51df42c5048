"""The sentences about conversations that are deleted. Pure."""

from __future__ import annotations

from pathlib import Path

from growbox_app.library_face import ForgetState, Forgetting
from growbox_app.text import tr
from memory.values import ForgetPreview, ForgetReport
from ui.view_models.display import one_line

TITLE_CHARACTERS = 40


def counted(key: str, count: int) -> str:
    """A number of things in words."""
    return tr(f"{key}_{'one' if count == 1 else 'many'}", count=count)


def titled(title: str) -> str:
    """A title that fits into a sentence."""
    return one_line(title, TITLE_CHARACTERS) or tr("conversation.untitled")


def question(title: str, preview: ForgetPreview) -> str:
    """What would go, before it goes: a line for each thing said."""
    counts = {
        "messages": preview.messages,
        "notes": preview.notes,
        "documents": preview.documents,
    }
    what = [counted(f"forget.{name}", count) for name, count in counts.items() if count]
    parts = [
        tr("forget.ask", title=titled(title)),
        tr("forget.what", what=tr("forget.and").join(what) or tr("forget.nothing")),
    ]
    if preview.elsewhere:
        parts.append(counted("forget.elsewhere", preview.elsewhere))
    return "\n".join(parts)


def progress(forgetting: Forgetting, seconds: int) -> str:
    """How far a conversation is gone."""
    title = titled(forgetting.title) if forgetting.title else tr("forget.untitled")
    if forgetting.state is ForgetState.WAITING:
        return tr("forget.waiting", title=title, seconds=seconds)
    if forgetting.state is ForgetState.FAILED:
        return tr("forget.failed", title=title)
    if forgetting.state is ForgetState.DONE and forgetting.report is not None:
        return _done(title, forgetting.report)
    said = tr("forget.running", title=title) if forgetting.title else tr("forget.running_untitled")
    if not forgetting.step:
        return said
    step = tr(f"forget.step_{forgetting.step}", done=forgetting.done, total=forgetting.total)
    return f"{said} {step}"


def _done(title: str, report: ForgetReport) -> str:
    if report.left:
        names = ", ".join(sorted({Path(name).name for name in report.left}))
        return tr("forget.done_left", title=title, left=names)
    if not report.searched:
        return tr("forget.done_unsearched", title=title)
    key = "forget.done_shared" if report.shared else "forget.done"
    return tr(key, title=title, files=report.files)
