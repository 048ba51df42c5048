"""The log: JSON lines in the data folder, private to the user, bounded. INFO and above never hold user text."""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
from pathlib import Path

from typing_extensions import override

from growbox_app.audit_log import redacted
from growbox_app.secrets import RedactSecrets

BYTES_MAX = 1_000_000
FILES = 3
ERROR_CHARACTERS_MAX = 8_000
"""Of a traceback; its end says what happened."""


class _JsonLines(logging.Formatter):
    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            error = self.formatException(record.exc_info)
            line["error"] = redacted(error[-ERROR_CHARACTERS_MAX:])
        return json.dumps(line, ensure_ascii=False)


def log_to(data_path: Path) -> None:
    """Starts the log of a data folder. Idempotent; an unwritable folder is no reason to stop."""
    root = logging.getLogger()
    path = data_path / "logs" / "growbox.log"
    if any(getattr(handler, "baseFilename", "") == str(path) for handler in root.handlers):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=BYTES_MAX, backupCount=FILES - 1, encoding="utf-8", delay=False
        )
        os.chmod(path, 0o600)  # noqa: PTH101 - before the first line is written
    except OSError:
        return
    handler.setFormatter(_JsonLines())
    handler.addFilter(RedactSecrets())
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def stop_logging(data_path: Path) -> None:
    """Closes the log of a data folder."""
    root = logging.getLogger()
    path = str(data_path / "logs" / "growbox.log")
    for handler in list(root.handlers):
        if getattr(handler, "baseFilename", "") == path:
            root.removeHandler(handler)
            handler.close()
