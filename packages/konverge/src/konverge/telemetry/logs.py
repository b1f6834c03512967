"""Logs: the standard library's logging, as lines for people or for machines.

Messages are constant, facts are fields: `log.info("Scaled", extra={"replicas": 3})`. A field is whatever `extra` or a
`ContextLogger` added to a record. Rules that hold here:

1. A record becomes one line (in the human form its traceback follows), whatever is in it; formatting never raises.
2. Lines are bounded: long texts are cut, large values are shown by their beginning.
3. No secrets: objects are shown by their `repr`, which for a Secret is its name only. A field whose *name* says that it
   is a secret (password, token, ...) is hidden, and what looks like one in a message or a traceback is too. That is a
   net, not a wall: what code puts into a message itself is its own concern.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final, Literal, TextIO

from konverge.telemetry.secrets import without_secrets

__all__ = ["ContextLogger", "HumanFormatter", "JsonFormatter", "configure_logs"]

_MESSAGE: Final = 8_192
_FIELD: Final = 1_024
_TRACE: Final = 16_384
_FIELDS: Final = 64
_OURS: Final = "_konverge_handler"

# What a record has by itself; everything else on it was put there as a field.
_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_TAKEN: Final = frozenset({"time", "level", "logger", "message", "exception"})
_SECRET_NAME: Final = re.compile(
    "password|passwd|secret_?data|token$|api_?key|private_?key|authorization", re.IGNORECASE
)
_QUOTE: Final = '"'
_ESCAPED: Final = '\\"'
_NEEDS_QUOTES: Final = re.compile(r'[\s"=]|^$')
_COLOURS: Final = {"DEBUG": "2", "INFO": "36", "WARNING": "33", "ERROR": "31", "CRITICAL": "31;1"}


def configure_logs(
    format: Literal["human", "json"] = "human",  # noqa: A002 - the word that flags and settings use
    level: int | str = "INFO",
    *,
    stream: TextIO | None = None,
) -> None:
    """Send all logs of the process to `stream` (stderr), in one form, from a level on.

    Called again, it replaces what it set up before; handlers of others stay.

    Raises: ValueError for a form or level that does not exist.
    """
    stream = stream if stream is not None else sys.stderr
    if format == "json":
        formatter: logging.Formatter = JsonFormatter()
    elif format == "human":
        formatter = HumanFormatter(colours=_is_terminal(stream))
    else:
        raise ValueError(f"the format of logs is 'human' or 'json', got {format!r}")
    number = _level(level)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    setattr(handler, _OURS, True)
    root = logging.getLogger()
    for old in [one for one in root.handlers if getattr(one, _OURS, False)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(number)


class ContextLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds the same fields to every line: `ContextLogger(kind="WebApp", key="shop/web", attempt=1)`.

    Fields given with a line are added to them and win.
    """

    def __init__(self, logger: logging.Logger | None = None, **fields: Any) -> None:
        super().__init__(logger or logging.getLogger("konverge.reconcile"), fields)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the fields."""
        kwargs["extra"] = _harmless({**(self.extra or {}), **(kwargs.get("extra") or {})})
        return msg, kwargs

    def bind(self, **fields: Any) -> ContextLogger:
        """Give a logger with more fields."""
        return ContextLogger(self.logger, **{**(self.extra or {}), **fields})


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the fields, and exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        line: dict[str, Any] = {
            "time": _rfc3339(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": _cut(_message(record), _MESSAGE),
        }
        for name, value in _fields(record):
            line[name + "_" if name in _TAKEN else name] = _plain(value)
        if trace := _trace(self, record):
            line["exception"] = trace
        return json.dumps(line, ensure_ascii=True)


class HumanFormatter(logging.Formatter):
    """A line for people: time, level, logger, message, and the fields as key=value."""

    def __init__(self, *, colours: bool = False) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Give the line, and the traceback below it."""
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = self._coloured(f"{record.levelname:<7}", record.levelname)
        head = f"{moment}.{int(record.created % 1 * 1000):03d} {level} {record.name}: "
        message = _printable(_cut(_message(record), _MESSAGE))
        fields = "".join(f"  {_quoted(name)}={_quoted(value)}" for name, value in _fields(record))
        trace = "\n".join(map(_printable, _trace(self, record).split("\n")))
        return f"{head}{message}{fields}" + (f"\n{trace}" if trace else "")

    def _coloured(self, text: str, level: str) -> str:
        colour = _COLOURS.get(level)
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours and colour else text


def _level(level: int | str) -> int:
    number = logging.getLevelName(level.upper()) if isinstance(level, str) else level
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{level!r} is no level of logs: write DEBUG, INFO, WARNING or ERROR")
    return number


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # no file, or a closed one
        return False


def _harmless(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Rename fields that logging would refuse with a KeyError, because a record has such an attribute of its own."""
    return {f"{name}_" if name in _PLAIN else name: value for name, value in fields.items()}


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    found = [(str(name), value) for name, value in vars(record).items() if name not in _PLAIN]
    for name, value in found[:_FIELDS]:
        yield name, "<hidden>" if _SECRET_NAME.search(name) else value


def _message(record: logging.LogRecord) -> str:
    try:
        return without_secrets(record.getMessage())
    except Exception:
        # Arguments that do not fit the message, or one whose str fails: say it without them.
        return f"{record.msg!s:.1000} (its arguments could not be shown)" if isinstance(record.msg, str) else "?"


def _shown(value: Any) -> str:
    try:
        return value if isinstance(value, str) else repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


def _plain(value: Any) -> Any:
    """Give a value that JSON can hold: simple ones as they are, all others by their looks."""
    if value is None or isinstance(value, bool) or type(value) is int:
        return value if not isinstance(value, int) or abs(value) < 2**63 else str(value)[:_FIELD]
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    return _cut(_shown(value), _FIELD)


def _quoted(value: Any) -> str:
    text = _printable(_cut(_shown(value), _FIELD))
    return f'"{text.replace(_QUOTE, _ESCAPED)}"' if _NEEDS_QUOTES.search(text) else text


def _printable(text: str) -> str:
    """Show line breaks, colours and what no terminal can print by their escapes: a text cannot forge a line."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    try:
        text = formatter.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""
        text = without_secrets(text)
    except Exception:
        text = "<the error cannot be shown>"
    stack = str(record.stack_info) if record.stack_info else ""
    whole = "\n".join(part for part in (text, stack) if part)
    if len(whole) <= _TRACE:
        return whole
    # The beginning says where it started, the end what it was.
    return f"{whole[: _TRACE // 4]}\n...\n{whole[-_TRACE * 3 // 4 :]}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _rfc3339(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1_000_000):06d}Z"
