"""A report in words and as JSON; both faces use it."""

from __future__ import annotations

from typing import Any

from growbox_app.ingest.report import IngestReport, SkippedFile, SkipReason
from growbox_app.text import Translator

_COUNTS = (
    "added",
    "changed",
    "unchanged",
    "removed",
    "ignored",
    "passages_added",
    "passages_kept",
    "passages_retired",
)


def sentence(report: IngestReport, translate: Translator) -> str:
    """What an ingest did, in a few sentences, one a line."""
    new = report.added or report.changed
    key = "ingest.done" if new else ("ingest.nothing_new" if report.unchanged else "ingest.nothing")
    parts = [
        translate(
            key,
            added=f"{report.added:,}",
            changed=f"{report.changed:,}",
            unchanged=f"{report.unchanged:,}",
            passages=f"{report.passages_added:,}",
        )
    ]
    if report.removed:
        parts.append(translate("ingest.removed", count=f"{report.removed:,}"))
    if report.reasons:
        named = " · ".join(
            translate(
                "ingest.counted", count=f"{count:,}", reason=translate(f"ingest.reason.{reason}")
            )
            for reason, count in report.reasons
        )
        parts.append(translate("ingest.skipped", count=f"{report.skipped_count:,}", reasons=named))
    return "\n".join(parts)


def skipped_line(skipped: SkippedFile, translate: Translator) -> str:
    """One file that was left out, and why."""
    return f"{skipped.path} · {translate(f'ingest.reason.{skipped.reason}')}"


def fields_of(report: IngestReport) -> dict[str, Any]:
    """A JSON object."""
    return {name: getattr(report, name) for name in _COUNTS} | {
        "skipped": [{"path": item.path, "reason": item.reason.value} for item in report.skipped],
        "reasons": {reason.value: count for reason, count in report.reasons},
    }


def report_from(fields: dict[str, Any]) -> IngestReport:
    """The inverse of `fields_of`."""
    return IngestReport(
        **{name: fields[name] for name in _COUNTS},
        skipped=tuple(
            SkippedFile(path=item["path"], reason=SkipReason(item["reason"]))
            for item in fields["skipped"]
        ),
        reasons=tuple((SkipReason(reason), n) for reason, n in fields["reasons"].items()),
    )
