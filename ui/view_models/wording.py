"""Sentences of the window from values: problems, phases, figures, times, sizes. Both languages through `growbox_app.text.tr`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from growbox_app.api import (
    EnginePhase,
    EngineStatus,
    Phase,
    PhaseChanged,
    Problem,
    Progress,
    ToolCalled,
    ToolStarted,
    TurnStats,
    UsedMemory,
)
from growbox_app.approval_face import Approval, ApprovalEnded
from growbox_app.mind_face import JudgeSkill
from growbox_app.problems import sentence
from growbox_app.text import tr
from memory.values import NodeKind, NodeStatus, Role, Statistics
from ui.view_models.display import one_line, visible
from ui.view_models.transcript import Message, Note, Restored

DAY_MS = 86_400_000
PATHS_SHOWN = 4
_PLACE = re.compile(r"-(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))?")
_WIDE_ENDS = "。！？；："
_NOT_READY = (EnginePhase.STARTING, EnginePhase.LOADING, EnginePhase.RESTARTING)


def number(value: int) -> str:
    """`3412` → `3,412`."""
    return f"{value:,}"


def counted(key: str, count: int) -> str:
    """The sentence `<key>_one` or `<key>_many` with its number."""
    return tr(f"{key}_one" if count == 1 else f"{key}_many", count=number(count))


def named(kind: str, name: str) -> str:
    """The word for a machine name, `tool.<name>` or `store.<name>`; a name that has none stays as it is."""
    word = tr(f"{kind}.{name}")
    return name if word == f"{kind}.{name}" else word


def sentences(*parts: str) -> str:
    """Sentences one behind the other; no space behind a sign of Chinese, which has its own."""
    text = ""
    for part in filter(None, parts):
        text += part if not text or text[-1] in _WIDE_ENDS else f" {part}"
    return text


def place(header: str) -> str:
    """Where a change stands in the file as it is, `lines 1–3`; in the new one, where that is all there is."""
    found = _PLACE.search(header)
    if found is None:
        return header.strip("@ ")
    old, old_count, new, new_count = found.groups()
    first, count = int(old), int(old_count or 1)
    if not count:
        first, count = int(new), int(new_count or 1)
    if count <= 1:
        return tr("agent.line", line=number(first))
    return tr("agent.lines", first=number(first), last=number(first + count - 1))


def size(count: int) -> str:
    """A size in bytes, as people say it (decimal units)."""
    if count >= 1_000_000_000:
        return f"{count / 1e9:.1f} GB"
    if count >= 1_000_000:
        return f"{count / 1e6:.0f} MB"
    if count >= 1_000:
        return f"{count / 1e3:.0f} kB"
    return f"{count} B"


def percent(share: float) -> str:
    """A share 0..1 as `97 %`."""
    return f"{share * 100:.0f} %"


def duration(seconds: float) -> str:
    """A span of time, rounded to what matters."""
    if seconds < 90:
        return tr("unit.seconds", count=max(1, round(seconds)))
    if seconds < 5400:
        return tr("unit.minutes", count=round(seconds / 60))
    return tr("unit.hours", count=f"{seconds / 3600:.1f}")


def local_time(time_ms: int) -> datetime:
    """A stored time in the user's time zone."""
    return datetime.fromtimestamp(time_ms / 1000, tz=UTC).astimezone()


def clock_time(time_ms: int, now_ms: int) -> str:
    """`14:02` today, with the date before today, with the year before this year."""
    moment, now = local_time(time_ms), local_time(now_ms)
    clock = moment.strftime("%H:%M")
    if moment.date() == now.date():
        return clock
    return f"{day(time_ms, now_ms)} {clock}"


def day(time_ms: int, now_ms: int) -> str:
    """A date, with its year only when that is not the current one."""
    moment, now = local_time(time_ms), local_time(now_ms)
    key = "unit.day" if moment.year == now.year else "unit.day_year"
    month = tr(f"unit.month_{moment.month}")
    return tr(key, day=moment.day, month=month, year=moment.year)


def age(time_ms: int, now_ms: int) -> str:
    """A short age for lists: the clock today, else the day."""
    if local_time(time_ms).date() == local_time(now_ms).date():
        return local_time(time_ms).strftime("%H:%M")
    return day(time_ms, now_ms)


def speaker(role: Role) -> str:
    """Who said it."""
    return tr(f"role.{role}")


def problem(trouble: Problem) -> str:
    """What happened, what it means, what to do."""
    return sentence(trouble, tr)


def phase(change: PhaseChanged) -> str:
    """The phase of a turn: `reading 1,240 tokens · 14 s left`, `writing 11.8 tok/s`."""
    parts = [tr(f"phase.{change.phase}")]
    if change.phase is Phase.READING and change.total:
        parts[0] = tr("phase.reading_tokens", count=number(change.total))
        if change.done:
            parts.append(percent(min(1.0, change.done / change.total)))
        if change.rate > 0:
            parts.append(tr("phase.reading_rate", rate=number(round(change.rate))))
    if change.phase is Phase.RECALLING and change.detail in _NOT_READY:
        parts[0] = tr("phase.waiting_engine")
    if change.phase is Phase.WRITING and change.rate > 0:
        parts[0] = tr("phase.writing_rate", rate=f"{change.rate:.1f}")
    if change.phase is Phase.TOOL and change.detail:
        parts[0] = tr("phase.tool_running", name=named("tool", change.detail))
    if change.left_s is not None and change.phase in (Phase.READING, Phase.RECALLING):
        parts.append(tr("phase.left", time=duration(change.left_s)))
    return " · ".join(parts)


def memories_line(memories: tuple[UsedMemory, ...]) -> str:
    """`used 3 memories · rag 2 · pointer 1`."""
    counts: dict[str, int] = {}
    for memory in memories:
        counts[memory.way] = counts.get(memory.way, 0) + 1
    ways = [f"{tr(f'way.{way}')} {count}" for way, count in counts.items()]
    return " · ".join([counted("answer.used", len(memories)), *_concluded(memories), *ways])


def _concluded(memories: tuple[UsedMemory, ...]) -> list[str]:
    """How many of them GrowBox has concluded by itself, and how many are skills."""
    kinds = [memory.kind for memory in memories]
    named = (("answer.conclusions", NodeKind.KNOWLEDGE), ("answer.skills", NodeKind.SKILL))
    return [counted(key, kinds.count(kind)) for key, kind in named if kind in kinds]


def stats_line(stats: TurnStats) -> str:
    """`142 tok · 11.8 tok/s · 3,310 reused (97 %) · 102 new in 0.4 s`; empty when the model wrote nothing."""
    if not stats.answer_tokens:
        return ""
    parts = [tr("answer.tokens", count=number(stats.answer_tokens))]
    if stats.tokens_per_s > 0:
        parts.append(tr("answer.rate", rate=f"{stats.tokens_per_s:.1f}"))
    if stats.prompt_tokens and stats.reuse_known:
        reused = number(stats.reused_tokens)
        parts.append(tr("answer.reused", count=reused, share=percent(stats.reused_share)))
        key = "answer.new_timed" if stats.prefill_s > 0 else "answer.new"
        parts.append(tr(key, count=number(stats.new_tokens), time=f"{stats.prefill_s:.1f}"))
    if stats.answered_by:
        parts.append(tr("endpoint.answered_by", who=stats.answered_by))
    return " · ".join(parts)


def stats_figures(stats: TurnStats) -> str:
    """All figures of an answer, a sentence a line; only those that were measured."""
    lines: list[str] = []
    if stats.prompt_tokens and stats.reuse_known:
        lines.append(
            tr(
                "answer.figures_prompt",
                prompt=number(stats.prompt_tokens),
                reused=number(stats.reused_tokens),
                share=percent(stats.reused_share),
            )
        )
    if stats.prefill_s > 0:
        rate = number(round(stats.new_tokens / stats.prefill_s))
        time, new = f"{stats.prefill_s:.1f}", number(stats.new_tokens)
        lines.append(tr("answer.figures_read", new=new, time=time, rate=rate))
    if stats.decode_s > 0:
        rate, count = f"{stats.tokens_per_s:.1f}", number(stats.answer_tokens)
        time = f"{stats.decode_s:.1f}"
        lines.append(tr("answer.figures_written", count=count, time=time, rate=rate))
    if stats.first_token_s > 0:
        first, recall = f"{stats.first_token_s:.1f}", f"{stats.recall_ms:.0f}"
        lines.append(tr("answer.figures_first", first=first, recall=recall))
    return "\n".join(lines)


def cost_line(stats: TurnStats) -> str:
    """What the turn cost, for the recall trace."""
    return tr(
        "trace.cost",
        recall=f"{stats.recall_ms:.0f}",
        prompt=number(stats.prompt_tokens),
        reused=number(stats.reused_tokens),
        first=f"{stats.first_token_s:.1f}",
    )


def judge(skills: tuple[JudgeSkill, ...], model: str) -> str:
    """Who reads the past and how well it tells what answers a question; empty while nobody can."""
    if not skills:
        return ""
    parts = [tr("judge.name", model=model or tr("engine.model"))]
    for skill in skills:
        language = tr(f"judge.{skill.language}")
        if skill.auc is None:
            parts.append(tr("judge.unmeasured", language=language))
        else:
            key = "judge.trusted" if skill.trusted else "judge.suggests"
            parts.append(tr(key, language=language, auc=f"{skill.auc:.2f}"))
    return " · ".join(parts)


def memory_figures(memory: UsedMemory) -> str:
    """Way, score and its parts of one used memory."""
    parts = [tr(f"way.{memory.way}"), tr("trace.score", value=f"{memory.score:.2f}")]
    if memory.similarity is not None:
        parts.append(tr("trace.similarity", value=f"{memory.similarity:.2f}"))
    if memory.lexical is not None:
        parts.append(tr("trace.lexical", value=f"{memory.lexical:.2f}"))
    if memory.kind in (NodeKind.KNOWLEDGE, NodeKind.SKILL):
        parts.insert(0, tr(f"trace.kind_{memory.kind}"))
    if memory.cited:
        parts.append(tr("trace.cited"))
    return " · ".join(parts)


def tool_line(call: ToolCalled) -> str:
    """One quiet line about a tool call."""
    key = "answer.tool" if call.ok or call.cut_off else "answer.tool_failed"
    result = cut_off(call) or visible(call.result) or tr("answer.failed")
    return tr(key, name=named("tool", call.name), result=result)


def cut_off(call: ToolCalled) -> str:
    """What a call that did not come to its end may have left; empty for one that did."""
    if not call.cut_off:
        return ""
    return tr("agent.cut_off_exit" if call.cut_off == "exit" else "agent.cut_off_stop")


def approval_line(over: ApprovalEnded) -> str:
    """How an approval ended."""
    ending = "allowed" if over.allowed else "denied" if over.by == "user" else over.by
    target = one_line(visible(over.what))
    what = " ".join(part for part in (named("agent.verb", over.executor), target) if part)
    return tr(f"agent.approval_{ending}", what=what)


def restored_line(restored: Restored) -> str:
    """What undoing a call has changed back."""
    report = restored.report
    if not report.is_done and report.conflicts:
        return tr("agent.restored_conflicts", paths=_some(report.conflicts))
    count = len(report.restored) + len(report.removed)
    key = "agent.redone" if restored.again else "agent.restored"
    parts = [counted(key, count) if count else tr("agent.restored_nothing")]
    left = (*report.not_saved, *report.failed)
    if left:
        parts.append(tr("agent.restored_left", paths=_some(left)))
    return sentences(*parts)


def _some(paths: tuple[Path, ...]) -> str:
    """The first of some paths."""
    more = " …" if len(paths) > PATHS_SHOWN else ""
    return ", ".join(visible(str(path)) for path in paths[:PATHS_SHOWN]) + more


def note(entry: Note) -> str:
    """A tool call, an approval or trouble as a line of the conversation."""
    match entry:
        case Problem():
            return problem(entry)
        case ToolCalled():
            return tool_line(entry)
        case ToolStarted():
            return tr("phase.tool_running", name=named("tool", entry.name))
        case Approval():
            return tr("agent.approval_waits", what=named("agent.verb", entry.executor))
        case ApprovalEnded():
            return approval_line(entry)
        case Restored():
            return restored_line(entry)


def message_text(message: Message) -> str:
    """A message with its marks as plain text."""
    marks = [note(entry) for entry in message.notes]
    if message.memories:
        marks.append(memories_line(message.memories))
    if not message.live and ending(message.status):
        marks.append(ending(message.status))
    return "\n".join([speaker(message.role), message.text, *marks])


def ending(status: NodeStatus) -> str:
    """A word for an answer that did not end by itself; empty for a complete one."""
    return "" if status is NodeStatus.COMPLETE else tr(f"answer.{status}")


def engine(status: EngineStatus) -> str:
    """The model process in the status line."""
    if status.phase is EnginePhase.FAILED and status.problem is not None:
        return tr("engine.failed")
    words = tr(
        f"engine.{status.phase}",
        model=status.model_name or tr("engine.model"),
        share=percent(status.progress),
    )
    if status.phase is not EnginePhase.READY:
        return words
    slow = [tr("processor.slow")] if status.slow_processor else []
    rewriting = [] if status.prefix_stable else [tr("engine.rewrites")]
    return " · ".join([words, *slow, *rewriting])


def background(statistics: Statistics | None, resting: str = "") -> str:
    """Background activity in the status line; `resting` is what the background mind does."""
    parts = [resting] if resting else []
    if statistics is not None and statistics.pending_embeddings:
        parts.append(counted("status.indexing", statistics.pending_embeddings))
    return " · ".join(parts) or tr("status.idle")


def health(statistics: Statistics | None) -> tuple[str, bool]:
    """The stores' health in words, and whether all is well."""
    if statistics is None:
        return "", True
    ill = [store for store in statistics.stores if not store.ok]
    if not ill:
        return tr("status.healthy"), True
    names = ", ".join(named("store", store.name) for store in ill)
    return tr("status.trouble", stores=names), False


def progress(step: Progress) -> str:
    """A long step: what, how far, how fast, how long still."""
    parts = [tr(f"progress.{step.step}")]
    if step.detail:
        parts[0] = f"{parts[0]} {step.detail}"
    if step.total:
        parts.append(percent(min(1.0, step.done / step.total)))
    if step.rate > 0:
        parts.append(f"{size(int(step.rate))}/s")
    if step.left_s is not None:
        parts.append(tr("phase.left", time=duration(step.left_s)))
    return " · ".join(parts)
