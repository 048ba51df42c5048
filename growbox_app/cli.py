"""Commands of the headless face.

`ask` runs one turn, `ingest` adds files; while a window is open on the same data folder, the running instance does it. Sentences go to
stderr, the answer to stdout, so that a program can read it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from growbox_app import cli_tools, doctor, paths
from growbox_app.api import (
    EnginePhase,
    Notice,
    Problem,
    ProblemCode,
    ProblemError,
    Progress,
    TextDelta,
    TurnFinished,
)
from growbox_app.approval_face import ApprovalAsked
from growbox_app.assistant import GrowBox
from growbox_app.ingest.report import IngestReport
from growbox_app.ingest.words import fields_of, report_from, skipped_line
from growbox_app.ingest.words import sentence as ingest_sentence
from growbox_app.instance import Frame, hand_over
from growbox_app.problems import sentence
from growbox_app.relay import export_of, request_of, unattended
from growbox_app.report import TurnReport, problem_fields, problem_from
from growbox_app.rest.words import summary
from growbox_app.text import tr
from memory.values import AuditReport, NodeStatus

LOCK_TRIES = 20
LOCK_RETRY_S = 0.5
"""Another instance holds the data folder and does not listen: it is starting or ending, so try again for a while."""
INDEX_LOOK_S = 1.0
"""How often `ingest` looks how much is still to be indexed."""
SKIPPED_LINES_MAX = 50
LOAD_S = 60.0
_SETTLED = (EnginePhase.STOPPED, EnginePhase.READY, EnginePhase.FAILED)
SETTLE_S = 10.0
"""After an answer the process stays this long at most, to index what was said."""


def main(arguments: list[str]) -> int:
    """Parses and runs one command."""
    options = _parser().parse_args(_questions_may_begin_with_a_dash(arguments))
    commands = {
        "ask": _ask,
        "ingest": _ingest,
        "rest": _rest,
        "export": _export,
        "audit": _audit,
        "rebuild": _rebuild,
        "doctor": _doctor,
        "tools": _tools,
    }
    _utf8_streams()
    try:
        return asyncio.run(_interruptible(commands[options.command](options)))
    except ProblemError as error:
        return _say_problem(error.problem, as_json=getattr(options, "json", False))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="growbox", description="GrowBox without a window.")
    commands = parser.add_subparsers(dest="command", required=True)
    ask = commands.add_parser("ask", help="ask one question")
    ask.add_argument("text", help="the question, in any language")
    ask.add_argument("--project", type=Path, help="folder of the project the question is about")
    ask.add_argument("--continue", action="store_true", help="go on in the newest conversation")
    ask.add_argument("--json", action="store_true", help="print one JSON object")
    ingest = commands.add_parser("ingest", help="add files and folders to the memory")
    ingest.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file or a folder")
    ingest.add_argument("--project", type=Path, help="folder of the project they belong to")
    ingest.add_argument("--json", action="store_true", help="print one JSON object")
    commands.add_parser("rest", help="say what is owed to the past, and what happens next")
    export = commands.add_parser("export", help="write conversations as Markdown files")
    export.add_argument("folder", type=Path, help="where the files go; made when it is not there")
    export.add_argument("--project", type=Path, help="only conversations of this project's folder")
    export.add_argument("--title", default="", help="only conversations whose title holds this")
    export.add_argument("--json", action="store_true", help="print one JSON object")
    audit = commands.add_parser("audit", help="check all stores against each other")
    audit.add_argument("--fix", action="store_true", help="repair what can be repaired")
    doctor = commands.add_parser("doctor", help="check that every part works on this machine")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    cli_tools.add_parser(commands)
    commands.add_parser("rebuild", help="recreate every derived store from the timeline")
    return parser


def _questions_may_begin_with_a_dash(arguments: list[str]) -> list[str]:
    """`ask "-> what is this?"` is a question, not an unknown option."""
    known = {"-h", "--help", "--project", "--continue", "--json"}
    texts = [word for word in arguments if word.startswith("-") and word.split("=")[0] not in known]
    if arguments[:1] != ["ask"] or not texts or "--" in arguments:
        return arguments
    rest = [word for word in arguments if word not in texts]
    return [*rest, "--", *texts]


def _utf8_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


async def _interruptible(work: Coroutine[Any, Any, int]) -> int:
    """Ctrl-C and a polite kill cancel the work, so that shutdown runs and nothing is left behind."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    if task is not None and sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
    return await work


async def _ask(options: argparse.Namespace) -> int:
    frame: Frame = {
        "wish": "ask",
        "text": options.text,
        "project": str(options.project.resolve()) if options.project else None,
        "continue": getattr(options, "continue"),
    }
    return await _here_or_there(
        frame,
        lambda assistant: _ask_here(assistant, frame, as_json=options.json),
        as_json=options.json,
    )


async def _here_or_there(
    frame: Frame, work: Callable[[GrowBox], Awaitable[int]], *, as_json: bool
) -> int:
    """Does the work on the data folder, or lets the instance do it that holds the folder."""
    locked = ProblemError(Problem(code=ProblemCode.DATA_LOCKED))
    for _ in range(LOCK_TRIES):
        assistant = _assistant()
        try:
            await assistant.start(_show_progress)
            return await work(assistant)
        except ProblemError as error:
            if error.problem.code is not ProblemCode.DATA_LOCKED:
                raise
            locked = error
        finally:
            await assistant.shutdown()
        code = await _ask_running_instance(frame, as_json)
        if code is not None:
            return code
        await asyncio.sleep(LOCK_RETRY_S)  # it is just ending, or just starting
    raise locked


async def _ask_here(assistant: GrowBox, frame: Frame, *, as_json: bool) -> int:
    code = 1
    async for event in assistant.ask(await request_of(assistant, frame)):
        if isinstance(event, TextDelta) and not as_json:
            print(event.text, end="", flush=True)  # noqa: T201
        elif isinstance(event, ApprovalAsked):
            assistant.answer_approval(unattended(event.approval))
        elif isinstance(event, Notice) and not as_json:
            _say(f"\n{sentence(event.problem, tr)}")
        elif isinstance(event, TurnFinished):
            _print_report(TurnReport.of(event), as_json=as_json)
            code = 0 if event.status is NodeStatus.COMPLETE else 1
    await assistant.settle(SETTLE_S)
    return code


async def _ingest(options: argparse.Namespace) -> int:
    frame: Frame = {
        "wish": "ingest",
        "paths": [str(path.absolute()) for path in options.paths],
        "project": str(options.project.resolve()) if options.project else None,
    }
    try:
        return await _here_or_there(
            frame,
            lambda assistant: _ingest_here(assistant, options),
            as_json=options.json,
        )
    except asyncio.CancelledError:
        _say(f"\n{tr('cli.ingest.stopped')}")
        raise


async def _ingest_here(assistant: GrowBox, options: argparse.Namespace) -> int:
    project = await assistant.library.open_project(options.project) if options.project else None
    report = await assistant.ingest(
        options.paths, _show_progress, project_id=project.id if project else None
    )
    code = _print_ingest(report, as_json=options.json)
    await _index(assistant)
    return code


async def _export(options: argparse.Namespace) -> int:
    frame: Frame = {
        "wish": "export",
        "folder": str(options.folder.absolute()),
        "project": str(options.project.resolve()) if options.project else None,
        "title": options.title,
    }

    async def here(assistant: GrowBox) -> int:
        return _print_export(await export_of(assistant, frame), as_json=options.json)

    return await _here_or_there(frame, here, as_json=options.json)


def _print_export(paths: Sequence[str], *, as_json: bool) -> int:
    """1 when no conversation was meant."""
    if as_json:
        print(json.dumps({"files": list(paths)}, ensure_ascii=False))  # noqa: T201
    else:
        for path in paths:
            print(path)  # noqa: T201
        _say(tr("cli.export.done", count=len(paths)) if paths else tr("cli.export.nothing"))
    return 0 if paths else 1


async def _index(assistant: GrowBox) -> None:
    """Stays until everything is found by its meaning too, as long as there is a model for it; it goes on at the next start."""
    pending = (await assistant.mind.statistics()).pending_embeddings
    most = pending
    while pending:
        if assistant.engine_status().phase is EnginePhase.FAILED:
            _say(tr("cli.ingest.later", pending=pending))
            return
        most = max(most, pending)
        _show_progress(Progress(step="ingest_indexing", done=most - pending, total=most))
        await assistant.settle(INDEX_LOOK_S)
        pending = (await assistant.mind.statistics()).pending_embeddings
        if pending:
            await asyncio.sleep(INDEX_LOOK_S)  # the model is still loading
    if most and sys.stderr.isatty():
        _say("")


def _print_ingest(report: IngestReport, *, as_json: bool) -> int:
    """1 when nothing of what was named is in the memory."""
    if as_json:
        print(json.dumps(fields_of(report), ensure_ascii=False))  # noqa: T201
    if sys.stderr.isatty():
        _say("")
    for skipped in report.skipped[:SKIPPED_LINES_MAX]:
        _say(skipped_line(skipped, tr))
    _say(ingest_sentence(report, tr))
    return 0 if report.files or report.removed else 1


async def _ask_running_instance(frame: Frame, as_json: bool) -> int | None:
    """The window (or another command) holds the data folder: let it answer. None: nobody listens there.

    The connection is read on a daemon thread, so that Ctrl-C ends this process at once.
    """
    result: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    def read() -> None:
        code = _relayed(frame, as_json)
        result.get_loop().call_soon_threadsafe(
            lambda: None if result.done() else result.set_result(code)
        )

    threading.Thread(target=read, name="relay", daemon=True).start()
    return await result


def _relayed(frame: Frame, as_json: bool) -> int | None:
    try:
        for reply in hand_over(paths.data_path(), frame):
            fields: Any = reply.get("report") or reply.get("problem") or reply.get("notice")
            if "report" in reply:
                _print_report(TurnReport(fields=fields), as_json=as_json)
                return 0 if fields["status"] == NodeStatus.COMPLETE.value else 1
            if "problem" in reply:
                return _say_problem(problem_from(fields), as_json=as_json)
            if "notice" in reply:
                _say(sentence(problem_from(fields), tr))
            elif "ingest" in reply:
                told: Any = reply["ingest"]
                return _print_ingest(report_from(told), as_json=as_json)
            elif "exported" in reply:
                written: Any = reply["exported"]
                return _print_export(written, as_json=as_json)
            elif "progress" in reply:
                step: Any = reply["progress"]
                _show_progress(Progress(**step))
            elif not as_json:
                print(reply.get("delta", ""), end="", flush=True)  # noqa: T201
    except OSError:
        pass
    return None


async def _rest(_options: argparse.Namespace) -> int:
    assistant = _assistant()
    try:
        await assistant.start(_show_progress)
        await _loaded(assistant)
        await assistant.rest.look_again()
        paused = bool(assistant.setting("memory.paused"))
        ledger, fatigue = await assistant.mind.ledger(), await assistant.mind.fatigue()
        for line in summary(assistant.rest.status(), ledger, fatigue, paused=paused):
            print(line)  # noqa: T201
        return 0
    finally:
        await assistant.shutdown()


async def _loaded(assistant: GrowBox) -> None:
    """Waits until the model has answered or failed: what comes next depends on how it judges."""
    for _ in range(int(LOAD_S / LOCK_RETRY_S)):
        if assistant.engine_status().phase in _SETTLED:
            return
        await asyncio.sleep(LOCK_RETRY_S)


async def _audit(options: argparse.Namespace) -> int:
    assistant = _assistant()
    try:
        await assistant.start(_show_progress)
        return _print_audit(await assistant.mind.audit(fix=options.fix))
    finally:
        await assistant.shutdown()


async def _rebuild(_options: argparse.Namespace) -> int:
    assistant = _assistant()
    try:
        await assistant.start(_show_progress)
        return _print_audit(await assistant.mind.rebuild())
    finally:
        await assistant.shutdown()


async def _tools(options: argparse.Namespace) -> int:
    return await cli_tools.run(options, _assistant)


async def _doctor(options: argparse.Namespace) -> int:
    findings: list[doctor.Finding] = []

    def say(finding: doctor.Finding) -> None:
        findings.append(finding)
        if not options.json:
            mark = tr("doctor.ok" if finding.ok else "doctor.failed")
            print(f"{mark:<8}{finding.words}", flush=True)  # noqa: T201

    well = await asyncio.to_thread(doctor.examine, paths.models_path(), say=say)
    if options.json:
        parts = [doctor.fields(finding) for finding in findings]
        print(json.dumps({"ok": well, "parts": parts}, ensure_ascii=False))  # noqa: T201
    return 0 if well else 1


def _assistant() -> GrowBox:
    return GrowBox(data_path=paths.data_path(), models_path=paths.models_path())


def _print_audit(report: AuditReport) -> int:
    for finding in report.findings:
        key = "cli.finding_fixed" if finding.fixed else "cli.finding"
        _say(tr(key, store=finding.store, problem=finding.problem, count=finding.count))
    _say(tr("cli.audit_clean" if report.clean else "cli.audit_dirty", nodes=report.nodes))
    return 0 if report.clean else 1


def _print_report(report: TurnReport, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False))  # noqa: T201
    else:
        print()  # noqa: T201
        for line in report.lines(tr):
            _say(line)
    for line in report.sentences(tr):
        _say(line)


def _show_progress(progress: Progress) -> None:
    if sys.stderr.isatty() and progress.total:
        share = progress.done / progress.total
        sys.stderr.write(f"\r{tr(f'progress.{progress.step}')} {share:.0%} ")
        sys.stderr.flush()


def _say_problem(problem: Problem, *, as_json: bool) -> int:
    if as_json:
        body = {"problem": problem_fields(problem)}
        print(json.dumps(body, ensure_ascii=False))  # noqa: T201
    _say(sentence(problem, tr))
    return 1


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
