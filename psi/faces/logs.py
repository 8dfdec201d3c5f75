"""What the service writes to standard error: a line for each record, a sentence and its fields. Keeps no log itself."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["LineFormatter", "set_up"]

# What every record has; the rest came with it as fields.
_USUAL: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class LineFormatter(logging.Formatter):
    """``2026-04-22T13:00:00.000Z INFO psi.access answered method=POST path=/eql status=200``"""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.exc_info and record.exc_info[1] is not None:
            # One record stays one line, whatever reads the log; the breaks come back with `sed 's/\\n/\n/g'`.
            fields["exception"] = self.formatException(record.exc_info)
        told = "".join(f" {name}={_shown(value)}" for name, value in fields.items())
        return f"{at} {record.levelname} {record.name} {_one_line(record.getMessage())}{told}"


def _one_line(text: str) -> str:
    return text.strip() if text.strip().isprintable() else json.dumps(text.strip(), ensure_ascii=False)[1:-1]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = str(value)
    # In quotes where it would not be one word, so that a value cannot pass for another field.
    plain = bool(text) and text.isprintable() and not any(each in text for each in ' "=\\')
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def set_up(level: str) -> None:
    """Everything that is worth a line goes to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("psi").setLevel(level.upper())
    # The server below tells every frame at DEBUG and whole addresses at INFO; both may hold a token.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
