"""Logs: formatters for the standard library's logging, for people and for machines.

Messages are constant, facts are fields: `log.info("scaled", extra={"replicas": 3})`. A field is an attribute that
`extra` or a `ContextLogger` added to a record. Rules that hold here:

1. A record becomes one line, whatever it holds; in the human format a traceback follows. Formatting never raises.
2. Lines are bounded: long texts and large values are truncated.
3. No secrets: objects are shown by their `repr`, which for a Secret is its name only, typed, untyped or inside another
   value. A field whose *name* is that of a secret (password, token, ...) is hidden, and so is text in a message, field
   or traceback that looks like one. This is a safety net and not a guarantee: code that logs a secret in its own
   message is responsible for it.
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

from konverge.telemetry.secrets import without_secret_data, without_secrets

__all__ = ["ContextLogger", "HumanFormatter", "JsonFormatter", "configure_logging", "ensure_logging"]

_MAX_MESSAGE: Final = 8_192
_MAX_FIELD: Final = 1_024
_MAX_TRACEBACK: Final = 16_384
_MAX_FIELDS: Final = 64
_MARKER: Final = "_konverge_handler"

# The attributes that every record has; all others were added as fields.
_RECORD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_RESERVED: Final = frozenset({"time", "level", "logger", "message", "exception"})
_SECRET_NAME: Final = re.compile(
    "password|passwd|secret_?data|token$|api_?key|private_?key|authorization", re.IGNORECASE
)
_QUOTE: Final = '"'
_ESCAPED: Final = '\\"'
_NEEDS_QUOTES: Final = re.compile(r'[\s"=]|^$')
_COLORS: Final = {"DEBUG": "2", "INFO": "36", "WARNING": "33", "ERROR": "31", "CRITICAL": "31;1"}


def configure_logging(
    format: Literal["human", "json"] = "human",  # noqa: A002 - the word that flags and settings use
    level: int | str = "INFO",
    *,
    stream: TextIO | None = None,
) -> None:
    """Send all logs of the process to `stream` (stderr by default), in one format, from a level on.

    A second call replaces the handler of the first; handlers of other code stay.

    Raises: ValueError for an unknown format or level.
    """
    output: TextIO = stream if stream is not None else sys.stderr
    if format == "json":
        formatter: logging.Formatter = JsonFormatter()
    elif format == "human":
        formatter = HumanFormatter(color=_is_terminal(output))
    else:
        raise ValueError(f"the format of logs is 'human' or 'json', got {format!r}")
    number = _level(level)
    handler = logging.StreamHandler(output)
    handler.setFormatter(formatter)
    setattr(handler, _MARKER, True)
    root = logging.getLogger()
    for old in [one for one in root.handlers if getattr(one, _MARKER, False)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(number)


def ensure_logging() -> None:
    """Configure the human format at INFO on stderr, unless the root logger or `konverge` already has a handler.

    `Manager.run` calls this, so that a plain script has readable logs, and an application that has configured logging
    (`logging.basicConfig`, `configure_logging`) keeps its own.
    """
    if not logging.getLogger("konverge").hasHandlers():
        configure_logging("human", "INFO")


class ContextLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds the same fields to every record: `ContextLogger(kind="WebApp", key="shop/web", attempt=1)`.

    A field passed with a record replaces one of the same name.
    """

    def __init__(self, logger: logging.Logger | None = None, **fields: Any) -> None:
        super().__init__(logger or logging.getLogger("konverge.reconcile"), fields)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the fields."""
        kwargs["extra"] = _allowed({**(self.extra or {}), **(kwargs.get("extra") or {})})
        return msg, kwargs

    def bind(self, **fields: Any) -> ContextLogger:
        """Return a logger with more fields."""
        return ContextLogger(self.logger, **{**(self.extra or {}), **fields})


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, the fields, and exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": _rfc3339(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": _truncated(_message(record), _MAX_MESSAGE),
        }
        for name, value in _fields(record):
            line[name + "_" if name in _RESERVED else name] = _json_value(value)
        if trace := _traceback(self, record):
            line["exception"] = trace
        return json.dumps(line, ensure_ascii=True)


class HumanFormatter(logging.Formatter):
    """A line for people: time, level, logger, message, and the fields as key=value."""

    def __init__(self, *, color: bool = False) -> None:
        super().__init__()
        self._color = color

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by the traceback if there is one."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = self._colored(f"{record.levelname:<7}", record.levelname)
        head = f"{clock}.{int(record.created % 1 * 1000):03d} {level} {record.name}: "
        message = _printable(_truncated(_message(record), _MAX_MESSAGE))
        fields = "".join(f"  {_quoted(name)}={_quoted(value)}" for name, value in _fields(record))
        trace = "\n".join(map(_printable, _traceback(self, record).split("\n")))
        return f"{head}{message}{fields}" + (f"\n{trace}" if trace else "")

    def _colored(self, text: str, level: str) -> str:
        color = _COLORS.get(level)
        return f"\x1b[{color}m{text}\x1b[0m" if self._color and color else text


def _level(level: int | str) -> int:
    number = logging.getLevelName(level.upper()) if isinstance(level, str) else level
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{level!r} is not a log level: write DEBUG, INFO, WARNING or ERROR")
    return number


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # not a file, or closed
        return False


def _allowed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the fields that logging would reject with a KeyError, since records have an attribute of that name."""
    return {f"{name}_" if name in _RECORD_ATTRIBUTES else name: value for name, value in fields.items()}


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    found = [(str(name), value) for name, value in vars(record).items() if name not in _RECORD_ATTRIBUTES]
    for name, value in found[:_MAX_FIELDS]:
        yield name, "<hidden>" if _SECRET_NAME.search(name) else value


def _message(record: logging.LogRecord) -> str:
    try:
        return without_secrets(_with_safe_arguments(record))
    except Exception:
        # The arguments do not match the message, or the str of one of them fails.
        return f"{record.msg!s:.1000} (its arguments could not be shown)" if isinstance(record.msg, str) else "?"


def _with_safe_arguments(record: logging.LogRecord) -> str:
    message = str(record.msg)
    if not record.args:
        return message
    if isinstance(record.args, Mapping):
        safe: dict[str, Any] = without_secret_data(dict(record.args))
        return message % safe
    return message % tuple(map(without_secret_data, record.args))


def _text(value: Any) -> str:
    try:
        return without_secrets(value if isinstance(value, str) else repr(without_secret_data(value)))
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


def _json_value(value: Any) -> Any:
    """Return a value that JSON can hold: scalars unchanged, all others by their `repr`."""
    if value is None or isinstance(value, bool) or type(value) is int:
        return value if not isinstance(value, int) or abs(value) < 2**63 else str(value)[:_MAX_FIELD]
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    return _truncated(_text(value), _MAX_FIELD)


def _quoted(value: Any) -> str:
    text = _printable(_truncated(_text(value), _MAX_FIELD))
    return f'"{text.replace(_QUOTE, _ESCAPED)}"' if _NEEDS_QUOTES.search(text) else text


def _printable(text: str) -> str:
    """Escape line breaks, terminal codes and unprintable characters, so that a text cannot forge a line."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    try:
        text = formatter.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""
        text = without_secrets(text)
    except Exception:
        text = "<the error cannot be shown>"
    stack = str(record.stack_info) if record.stack_info else ""
    whole = "\n".join(part for part in (text, stack) if part)
    if len(whole) <= _MAX_TRACEBACK:
        return whole
    # The beginning shows where the error started, the end shows the error itself.
    return f"{whole[: _MAX_TRACEBACK // 4]}\n...\n{whole[-_MAX_TRACEBACK * 3 // 4 :]}"


def _truncated(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _rfc3339(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1_000_000):06d}Z"
