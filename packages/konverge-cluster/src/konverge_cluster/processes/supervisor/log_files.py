"""The log of a container in the format of the kubelet's runtimes, bounded on disk.

    2026-01-02T03:04:05.000000006Z stdout F one line

`F` ends a line, `P` is a part of one that was too long. A file that reaches its limit is renamed to `<name>.1`, over
the one before, so that a container has at most two files.
"""

from __future__ import annotations

import os
import time
from typing import Final

__all__ = ["LINE_LIMIT", "LogFile", "OutputStream"]

LINE_LIMIT: Final = 16384


class LogFile:
    """A log that is at most twice as large as its limit."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size

    def write(self, stream: str, tag: str, content: bytes) -> None:
        """Write one line; what cannot be written, for lack of space, is dropped."""
        line = b"%s %s %s %s\n" % (_now(), stream.encode(), tag.encode(), content)
        if self._size and self._size + len(line) > self._limit:
            self._rotate()
        try:
            self._size += os.write(self._file, line)
        except OSError:
            return

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _rotate(self) -> None:
        os.close(self._file)
        os.replace(self._path, f"{self._path}.1")
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0


class OutputStream:
    """Standard output or standard error of a container, split into the lines of its log."""

    def __init__(self, name: str, log: LogFile) -> None:
        self._name = name
        self._log = log
        self._rest = b""

    def feed(self, content: bytes) -> None:
        """Add output that was read."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            self._write(line)
        while len(self._rest) > LINE_LIMIT:
            self._log.write(self._name, "P", self._rest[:LINE_LIMIT])
            self._rest = self._rest[LINE_LIMIT:]

    def finish(self) -> None:
        """Write a last line that has no end."""
        if self._rest:
            self._log.write(self._name, "P", self._rest)
            self._rest = b""

    def _write(self, line: bytes) -> None:
        while len(line) > LINE_LIMIT:
            self._log.write(self._name, "P", line[:LINE_LIMIT])
            line = line[LINE_LIMIT:]
        self._log.write(self._name, "F", line)


def _now() -> bytes:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return b"%s.%09dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode(), nanoseconds)
