"""Ingest from end to end: real folders, the real reader process, the real memory, a scripted engine."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.context import SpawnProcess
from pathlib import Path

import psutil
import pytest

from growbox_app.api import Progress
from growbox_app.assistant import GrowBox
from growbox_app.ingest.reader_process import ReaderProcess, ReadRequest
from growbox_app.ingest.report import IngestReport, SkipReason
from growbox_app.ingest.words import fields_of, report_from, sentence, skipped_line
from growbox_app.text import Translator
from memory.values import NodeKind, RecallQuery
from tests.fakes.application import run_application, scripted
from tests.unit.test_ingest_files import pdf, put, word

Step = Callable[[GrowBox], Awaitable[None]]
STATES = {"Lisbon": "Portugal", "Oslo": "Norway", "Quito": "Ecuador"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "资料"
    put(
        root,
        {
            "notes/cities.md": "# Cities\n\n"
            + "".join(
                f"## {c}\n\n{c} is in {s}. {'Filler words. ' * 40}\n\n" for c, s in STATES.items()
            ),
            "code/pool.py": "".join(
                f"def lend_{n}(x):\n{''.join(f'    y = x + {k}{chr(10)}' for k in range(40))}\n"
                for n in range(6)
            ),
            "短.txt": "这是短文。\r\n",
            ".gitignore": "*.log\n",
            "noise.log": "ignored",
            "empty/__init__.py": "",
        },
    )
    (root / "book.pdf").write_bytes(pdf("Kiwis cannot fly"))
    (root / "letter.docx").write_bytes(word())
    (root / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    return root


def run(tmp_path: Path, body: Step) -> None:
    run_application(lambda: scripted(tmp_path), body)


async def take(app: GrowBox, *paths: Path, seen: list[Progress] | None = None) -> IngestReport:
    return await app.ingest(paths, (seen if seen is not None else []).append)


async def pages(app: GrowBox, text: str) -> Sequence[str]:
    result = await app._memory.drive(lambda engine: engine.recall(RecallQuery(text=text)))
    return [page.node.content for page in result.pages]


def test_a_folder_is_found_by_what_is_in_it(tmp_path, folder):
    async def body(app: GrowBox) -> None:
        seen: list[Progress] = []
        report = await take(app, folder, seen=seen)
        assert (report.added, report.changed, report.unchanged, report.removed) == (6, 0, 0, 0)
        assert report.ignored == 2  # the log, the empty file
        assert report.reasons == ((SkipReason.BINARY, 1),)
        assert report.skipped[0].path == str(folder / "picture.png")
        assert report.passages_added > 8
        assert {step.step for step in seen} == {"ingest_finding", "ingest"}
        assert (seen[-1].done, seen[-1].total) == (8, 8)
        assert "Quito is in Ecuador" in (await pages(app, "Quito Ecuador"))[0]
        assert await pages(app, "kiwis fly") == ["Kiwis cannot fly"]
        assert "def lend_3" in (await pages(app, "lend_3"))[0]
        assert "第一段" in (await pages(app, "letter.docx 第一段"))[0]
        assert (await app.mind.audit(fix=False)).findings == ()

    run(tmp_path, body)


def test_what_did_not_change_is_not_read_again(tmp_path, folder):
    path = folder / "短.txt"
    status = path.stat()

    async def body(app: GrowBox) -> None:
        await take(app, folder)
        nodes = (await app.mind.statistics()).nodes
        os.utime(
            folder / "book.pdf", ns=(1, 1)
        )  # another stamp, the same bytes: read, and not kept
        path.write_bytes(b"x" * status.st_size)
        os.utime(
            path, ns=(status.st_atime_ns, status.st_mtime_ns)
        )  # other bytes under the same stamp
        report = await take(app, folder, path)
        assert (report.added, report.changed, report.unchanged) == (0, 0, 6)
        assert report.passages_added == report.passages_kept == 0
        assert (await app.mind.statistics()).nodes == nodes
        assert (await take(app, folder)).unchanged == 6

    run(tmp_path, body)


def test_of_a_changed_file_only_the_changed_passages_are_new(tmp_path, folder):
    async def body(app: GrowBox) -> None:
        first = await take(app, folder / "code" / "pool.py")
        path = folder / "code" / "pool.py"
        path.write_text(path.read_text().replace("def lend_4(x):", "def borrow_4(x):"))
        second = await take(app, folder / "code")
        assert (second.changed, second.passages_added, second.passages_retired) == (1, 1, 1)
        assert second.passages_kept == first.passages_added - 1
        assert await pages(app, "borrow_4")
        assert "lend_4" not in "".join(await pages(app, "lend_4"))

    run(tmp_path, body)


def test_a_deleted_file_leaves_recall_when_its_folder_comes_again(tmp_path, folder):
    async def body(app: GrowBox) -> None:
        await take(app, folder)
        (folder / "book.pdf").unlink()
        assert (await take(app, folder / "notes")).removed == 0
        assert await pages(app, "kiwis fly") == ["Kiwis cannot fly"]
        report = await take(app, folder)
        assert (report.removed, report.unchanged) == (1, 5)
        assert await pages(app, "kiwis fly") == []
        (folder / "短.txt").write_text("")
        assert (await take(app, folder)).removed == 1
        (folder / "notes" / "cities.md").write_bytes(b"\0\0")
        report = await take(app, folder)
        assert (report.removed, report.reasons[0]) == (1, (SkipReason.BINARY, 2))
        assert await pages(app, "Quito Ecuador") == []

    run(tmp_path, body)


def test_a_file_that_is_only_ignored_now_stays(tmp_path, folder):
    async def body(app: GrowBox) -> None:
        await take(app, folder)
        (folder / ".gitignore").write_text("*.pdf\n")
        assert (await take(app, folder)).removed == 0
        assert await pages(app, "kiwis fly") == ["Kiwis cannot fly"]

    run(tmp_path, body)


def test_a_stopped_ingest_goes_on_where_it_stopped(tmp_path, folder):
    many = folder / "many"
    put(many, {f"{n}.txt": f"Number {n} is kept." for n in range(40)})

    async def body(app: GrowBox) -> None:
        seen: list[Progress] = []
        task = asyncio.get_running_loop().create_task(take(app, many, seen=seen))
        while not seen or seen[-1].done < 10:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        report = await take(app, many)
        assert report.added + report.unchanged == 40
        assert report.unchanged >= 10
        assert report.added <= 30
        assert readers() == []

    run(tmp_path, body)


def readers() -> list[int]:
    """Reader processes that are still there."""
    children = psutil.Process().children()
    return [p.pid for p in children if "growbox-reader" in " ".join(p.cmdline())]


def test_shutting_down_ends_a_running_ingest(tmp_path, folder):
    many = folder / "many"
    put(many, {f"{n}.txt": f"Number {n} is kept." for n in range(60)})
    ended: list[asyncio.Task[IngestReport]] = []

    async def body(app: GrowBox) -> None:
        seen: list[Progress] = []
        ended.append(asyncio.get_running_loop().create_task(take(app, many, seen=seen)))
        while not seen or seen[-1].done < 3:
            await asyncio.sleep(0.001)
        await app.shutdown()
        with pytest.raises(asyncio.CancelledError):
            await ended[0]

    run(tmp_path, body)

    async def again(app: GrowBox) -> None:
        report = await take(app, many)
        assert report.added + report.unchanged == 60
        assert report.unchanged >= 3
        assert (await app.mind.audit(fix=False)).findings == ()

    run(tmp_path, again)


def test_our_own_folders_are_not_taken_along(tmp_path, folder):
    async def body(app: GrowBox) -> None:
        report = await take(app, tmp_path)
        assert report.added == 6
        assert not any("timeline.db" in skipped.path for skipped in report.skipped)

    run(tmp_path, body)


def test_passages_carry_place_time_and_project(tmp_path, folder):
    os.utime(folder / "notes" / "cities.md", ns=(10**18, 10**18))

    async def body(app: GrowBox) -> None:
        project = await app.library.open_project(folder)
        await app.ingest([folder], lambda _p: None, project_id=project.id)
        result = await app._memory.drive(
            lambda engine: engine.recall(RecallQuery(text="Quito Ecuador"))
        )
        node = result.pages[0].node
        assert (node.kind, node.project_id) == (NodeKind.CHUNK, project.id)
        assert node.context == "notes/cities.md › Cities › Quito"
        assert node.created_at_ms == 10**12
        assert node.source_uri == str(folder / "notes" / "cities.md")

    run(tmp_path, body)


def test_an_attachment_of_code_is_cut_at_definitions(tmp_path, folder):
    async def body(app: GrowBox) -> None:
        text = (folder / "code" / "pool.py").read_text()
        await app.attach(name="pool.py", text=text)
        await app.settle(20)
        (page,) = await pages(app, "lend_2")
        assert page.startswith("def lend_2")

    run(tmp_path, body)


# --- the reader process


def request(path: Path) -> ReadRequest:
    return ReadRequest(path=os.fsencode(path), place=path.name, known_hash="", characters_max=1500)


@pytest.mark.skipif(os.name == "nt", reason="the slow file is a pipe that says nothing")
def test_a_file_that_takes_too_long_costs_only_its_process(tmp_path):
    slow, good = tmp_path / "slow.txt", tmp_path / "good.txt"
    os.mkfifo(slow)
    good.write_text("fine")

    async def main() -> None:
        reader = ReaderProcess()
        try:
            assert (await reader.read(request(good))).text == "fine"
            first = reader._process.pid
            reader._read_s_max, whole = 0.2, reader._read_s_max
            assert (await reader.read(request(slow))).reason is SkipReason.TOO_SLOW
            assert not psutil.pid_exists(first)
            reader._read_s_max = whole  # a busy machine starts the next child slowly
            assert (await reader.read(request(good))).text == "fine"
            assert reader._process.pid != first
        finally:
            await reader.close()
            await reader.close()

    asyncio.run(main())


def test_a_file_that_kills_the_process_is_damaged_and_the_next_is_read(tmp_path):
    good = tmp_path / "good.txt"
    good.write_text("fine")

    async def main() -> None:
        reader = ReaderProcess()
        try:
            await reader.read(request(good))
            reader._process.kill()
            reader._process.join()
            assert (await reader.read(request(good))).reason is SkipReason.DAMAGED
            assert (await reader.read(request(good))).text == "fine"
        finally:
            await reader.close()

    asyncio.run(main())


def test_closing_while_the_child_starts_ends_it(tmp_path, monkeypatch):
    (tmp_path / "good.txt").write_text("fine")
    start, starting, go = SpawnProcess.start, threading.Event(), threading.Event()
    made: list[SpawnProcess] = []

    def slowly(process: SpawnProcess) -> None:
        made.append(process)
        starting.set()
        go.wait()
        start(process)

    monkeypatch.setattr(SpawnProcess, "start", slowly)

    async def main() -> None:
        reader = ReaderProcess()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(reader.read(request(tmp_path / "good.txt")))
            await asyncio.to_thread(starting.wait)
            asyncio.get_running_loop().call_later(0.05, go.set)
            await reader.close()
        assert reading.result().reason is SkipReason.DAMAGED
        assert (await reader.read(request(tmp_path / "good.txt"))).reason is SkipReason.DAMAGED
        assert len(made) == 1
        assert readers() == []

    asyncio.run(main())


def test_closing_in_the_middle_of_a_file_ends_the_child(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs a pipe that says nothing")
    slow = tmp_path / "slow.txt"
    os.mkfifo(slow)

    async def main() -> None:
        reader = ReaderProcess()
        reading = asyncio.get_running_loop().create_task(reader.read(request(slow)))
        while reader._process is None or reader._process.pid is None:
            await asyncio.sleep(0.001)
        await reader.close()
        assert (await reading).reason is SkipReason.DAMAGED

    asyncio.run(main())


# --- in words


REPORT = IngestReport(
    added=2,
    changed=1,
    unchanged=4,
    removed=1,
    passages_added=9,
    reasons=((SkipReason.BINARY, 3), (SkipReason.LINK, 1)),
)


def test_a_report_is_a_few_sentences():
    english, chinese = Translator("en"), Translator("zh")
    assert sentence(REPORT, english).splitlines() == [
        "Added to memory. Files: 2 new, 1 changed, 4 unchanged. New passages: 9.",
        "No longer on the disk, and out of the search: 1.",
        "Left out: 4 (not text: 3 · a link: 1).",
    ]
    assert "略过 4 个（不是文本 3 个 · 是链接 1 个）" in sentence(REPORT, chinese)
    assert "原样" in sentence(dataclasses.replace(REPORT, added=0, changed=0), chinese)
    assert sentence(IngestReport(), english) == "Nothing was added to the memory."


@pytest.mark.parametrize("reason", SkipReason)
def test_every_reason_has_words(reason):
    for language in ("en", "zh"):
        words = Translator(language)(f"ingest.reason.{reason}")
        assert not words.startswith("ingest.")


def test_a_report_survives_json(tmp_path, folder):
    async def body(app: GrowBox) -> None:
        report = await take(app, folder)
        assert report_from(fields_of(report)) == report
        line = skipped_line(report.skipped[0], Translator("en"))
        assert line == f"{folder / 'picture.png'} · not text"

    run(tmp_path, body)
