"""How well each chat model judges, by language: AUC on questions that the fit has not seen, and the fit itself.

`--fit` fits on the first 60 questions and writes `resources/calibration/judge-<model>.toml`; without it, the shipped
calibration is measured. Either way the figures are those of the next 100 questions. Readings are kept in the cache folder by
the hash of everything the engine was asked, so only a changed prompt or model costs forward passes; a run that stops half-way
goes on where it was. Figures: `judge_auc_<language>_<model>`, and for the larger model measured also `judge_auc_<language>`.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sqlite3
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from growbox_app import judging
from growbox_app.engine import entry
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from growbox_app.engine.supervisor import BACKGROUND_TOKENS
from growbox_app.models.calibration import JudgeCalibration, judge_calibration
from growbox_app.models.catalogue import Model, find
from growbox_app.paths import cache_path, resources_path
from tests.benchmarks.judge_data import Case, chinese_cases, english_cases
from tests.benchmarks.judge_fit import auc, fitted, interval, threshold_report
from tests.real_models import LIGHT, MODELS, real_load

FIT_QUESTIONS = 60
TEST_QUESTIONS = 100
MODELS_BY_NAME = {"light": "qwen2.5-coder-0.5b", "standard": "qwen2.5-coder-1.5b"}
FILES = {"zh": "cmrc2018_trial.json", "en": "locomo_dev.json"}
READERS = {"zh": chinese_cases, "en": english_cases}


class Readings:
    """The engine's answers, kept between runs. The file holds numbers and hashes, no text."""

    def __init__(self, model: Model) -> None:
        path = cache_path() / "bench" / "readings.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None, timeout=60)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS readings(key BLOB PRIMARY KEY, reading BLOB)")
        self._model = model

    def _key(self, asked: p.Judge, candidate: str) -> bytes:
        """Names everything that a reading depends on."""
        whole = msgspec.msgpack.encode(
            msgspec.structs.replace(asked, id=0, candidates=(candidate,))
        )
        return hashlib.blake2b(self._model.sha256.encode() + whole, digest_size=16).digest()

    def get(self, asked: p.Judge, candidate: str) -> p.Reading | None:
        """The kept reading of a candidate."""
        key = self._key(asked, candidate)
        row = self._db.execute("SELECT reading FROM readings WHERE key = ?", (key,)).fetchone()
        return msgspec.msgpack.decode(row[0], type=p.Reading) if row else None

    def missing(self, asked: p.Judge) -> p.Judge:
        """The same request for what is not kept yet."""
        texts = (asked.blank, *asked.candidates)
        left = tuple(text for text in texts if self.get(asked, text) is None)
        return msgspec.structs.replace(asked, candidates=left)

    def put(self, asked: p.Judge, done: p.DoneJudge) -> None:
        """Keeps an answer."""
        found = [(asked.blank, done.blank), *zip(asked.candidates, done.readings, strict=True)]
        rows = [(self._key(asked, text), msgspec.msgpack.encode(it)) for text, it in found if it]
        self._db.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?)", rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A question and the signals of its candidates, the right one first."""

    case: Case
    signals: tuple[dict[str, float], ...]


async def read_all(
    model: Model, language: str, cases: Sequence[Case], threads: int
) -> list[Judged]:
    """The signals of every case, from the cache where they are there."""
    readings = Readings(model)
    asked = [judging.request(0, language, case.query, case.candidates) for case in cases]
    missing = [left for it in asked if (left := readings.missing(it)).candidates]
    if missing:
        client = EngineClient(entry.run, on_death=lambda _code: None)
        try:
            load = real_load(
                client.next_id(), LIGHT.parent / ".cpu_variant.json", model.path(MODELS)
            )
            load = msgspec.structs.replace(
                load, threads=threads, background_tokens=BACKGROUND_TOKENS
            )
            await client.request(load, p.DoneLoad)
            await _read_missing(client, readings, missing, f"{model.id} {language}")
        finally:
            await client.close()
    return [_judged(readings, case, it) for case, it in zip(cases, asked, strict=True)]


def _judged(readings: Readings, case: Case, asked: p.Judge) -> Judged:
    """Passages here fit the context, so every candidate has a reading."""
    blank = readings.get(asked, asked.blank)
    found = [readings.get(asked, text) for text in asked.candidates]
    if blank is None or None in found:
        raise ValueError(f"a passage of {case.query!r} is too long for the judge")
    signals = tuple(judging.signals(it, blank) for it in found if it is not None)
    return Judged(case=case, signals=signals)


async def _read_missing(
    client: EngineClient, readings: Readings, missing: Sequence[p.Judge], name: str
) -> None:
    started = time.monotonic()
    for count, it in enumerate(missing, start=1):
        request = msgspec.structs.replace(it, id=client.next_id())
        readings.put(it, await client.request(request, p.DoneJudge))
        passed = time.monotonic() - started
        each = 1000 * passed / count / len(it.candidates)
        print(f"\r{name}: {count} of {len(missing)}, {each:.0f} ms each", end="", file=sys.stderr)
    print(file=sys.stderr)


def report(name: str, test: Sequence[Judged], calibration: JudgeCalibration) -> float:
    """Prints what the signals and their combination reach; returns the combination's AUC."""
    for signal in sorted(test[0].signals[0]):
        rows = [[found[signal] for found in it.signals] for it in test]
        print(f"  {name} {signal:<12} {_with_interval(rows)}")
    rows = [[judging.chance(found, calibration) for found in it.signals] for it in test]
    print(f"  {name} {'together':<12} {_with_interval(rows)}")
    print(f"  {name} {threshold_report(rows, yes=calibration.yes, no=calibration.no)}")
    return auc(rows)


def _with_interval(rows: Sequence[Sequence[float]]) -> str:
    low, high = interval(rows)
    return f"{auc(rows):.3f} ({low:.3f} to {high:.3f})"


def write(model: Model, parts: dict[str, JudgeCalibration]) -> None:
    """Writes a model's calibration."""
    lines = [
        "# Made by tests/benchmarks/judge.py --fit; belongs to one model file and one prompt.",
        f'model = "{model.id}"',
        f'sha256 = "{model.sha256}"',
    ]
    for language, found in sorted(parts.items()):
        lines += [
            "",
            f"[{language}]",
            f'prompt = "{judging.judge_prompt(language).version}"',
            *(
                f"{key} = {getattr(found, key):.4g}"
                for key in ("bias", "yes", "no", "auc", "auc_low", "auc_high")
            ),
            "",
            f"[{language}.weights]",
            *(f"{key} = {weight:.4g}" for key, weight in sorted(found.weights.items())),
        ]
    path = resources_path() / "calibration" / f"judge-{model.id}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(arguments: argparse.Namespace, name: str) -> dict[str, float]:
    """One model in the chosen languages."""
    model = find(MODELS_BY_NAME[name])
    figures: dict[str, float] = {}
    parts: dict[str, JudgeCalibration] = {}
    for language in arguments.language:
        file = arguments.data / (arguments.files or FILES)[language]
        cases = READERS[language](file, FIT_QUESTIONS + TEST_QUESTIONS)
        rows = asyncio.run(read_all(model, language, cases, arguments.threads))
        fit, test = rows[:FIT_QUESTIONS], rows[FIT_QUESTIONS:]
        if arguments.fit:
            calibration = fitted([it.signals for it in fit], [it.signals for it in test])
            parts[language] = calibration
        else:
            version = judging.judge_prompt(language).version
            calibration = judge_calibration(model.sha256[:16], language, version)
        figures[f"judge_auc_{language}_{name}"] = report(f"{name} {language}", test, calibration)
    if parts:
        write(model, parts)
    return figures


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="judge", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=resources_path().parent.parent / "shared" / "data"
    )
    parser.add_argument("--files", nargs=2, metavar=("ZH", "EN"), help="other files of that shape")
    parser.add_argument(
        "--model", nargs="+", choices=list(MODELS_BY_NAME), default=list(MODELS_BY_NAME)
    )
    parser.add_argument("--language", nargs="+", choices=list(FILES), default=list(FILES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fit", action="store_true", help="fit and write the calibration")
    found = parser.parse_args()
    found.files = dict(zip(("zh", "en"), found.files, strict=True)) if found.files else None
    return found


def main() -> int:
    """Measures what was asked for; figures last."""
    arguments = parsed()
    if not arguments.data.is_dir():
        print(f"There is no evaluation data at {arguments.data}; name its folder with --data.")
        return 0
    figures: dict[str, float] = {}
    for name in arguments.model:
        figures |= measure(arguments, name)
    for language in arguments.language:
        figures[f"judge_auc_{language}"] = figures[f"judge_auc_{language}_{arguments.model[-1]}"]
    for key, value in figures.items():
        print(f"{key}={value:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
