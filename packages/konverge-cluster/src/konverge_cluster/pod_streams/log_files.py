"""Reading of a container's log: the last lines, lines since a time, and new lines as they are written.

The format and the rotation are those of `processes.supervisor.log_files`. A reader holds at most a few lines.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from konverge_cluster.pod_streams.requests import LogOptions

__all__ = ["LogLine", "read_lines", "read_log"]

_POLL_SECONDS: Final = 0.1
_BLOCK: Final = 65536
_LINE_LIMIT: Final = 65536


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log file: its time, its stream, and its content, which ends a line of the output if `whole`."""

    time: str
    stream: str
    whole: bool
    content: bytes

    @property
    def output(self) -> bytes:
        """What the container wrote."""
        return self.content + b"\n" if self.whole else self.content


async def read_log(path: Path, options: LogOptions, is_terminated: Callable[[], bool]) -> AsyncGenerator[bytes]:
    """Yield the output of a container; with `follow`, until it has ended and everything is read."""
    left = options.limit_bytes
    pending = bytearray()
    starts_line = True
    async with aclosing(read_lines(path, options, is_terminated)) as lines:
        async for line in lines:
            if line is not None:
                pending += line.time.encode() + b" " if options.timestamps and starts_line else b""
                pending += line.output
                starts_line = line.whole
            if left is not None and len(pending) >= left:
                break
            if len(pending) >= _BLOCK or (line is None and pending):
                left = None if left is None else left - len(pending)
                yield bytes(pending)
                pending.clear()
                await asyncio.sleep(0)  # a client that reads fast must not hold up the others
    if pending:
        yield bytes(pending[:left])


async def read_lines(
    path: Path, options: LogOptions, is_terminated: Callable[[], bool], *, from_end: bool = False
) -> AsyncGenerator[LogLine | None]:
    """Yield the lines of a log; None while there is nothing new. With `from_end`, only lines that are written now."""
    with ExitStack() as stack:
        files = [stack.enter_context(one) for one in _open_files(path)]
        if from_end or options.tail_lines is not None:
            _seek_tail(files, 0 if from_end else options.tail_lines or 0)
        current = files.pop() if files else None
        for line in (line for old in files for line in _lines(old, options.since)):
            yield line
        while True:
            # Both are asked before the last read, so that it reads everything.
            ended = not options.follow or is_terminated()
            rotated = current is not None and _is_rotated(current, path)
            for line in _lines(current, options.since) if current is not None else ():
                yield line
            if rotated or current is None:
                current = _open(path)
                if current is not None:
                    stack.enter_context(current)
                    continue
            if ended:
                return
            yield None
            await asyncio.sleep(_POLL_SECONDS)


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except OSError:
        return None


def _open_files(path: Path) -> list[BinaryIO]:
    """Open the rotated file, if there is one, and the current one.

    The current one is opened first: if it is rotated now, both are the same file.
    """
    current, rotated = _open(path), _open(path.with_name(f"{path.name}.1"))
    if current is not None and rotated is not None and _number(current) == _number(rotated):
        rotated.close()
        rotated = None
    return [one for one in (rotated, current) if one is not None]


def _number(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino


def _is_rotated(file: BinaryIO, path: Path) -> bool:
    try:
        return path.stat().st_ino != _number(file)
    except OSError:
        return False


def _lines(file: BinaryIO, since: str) -> Iterator[LogLine]:
    """Yield the complete lines from here to the end of a file."""
    while True:
        start = file.tell()
        text = file.readline(_LINE_LIMIT)
        if not text.endswith(b"\n") and len(text) < _LINE_LIMIT:
            file.seek(start)
            return
        parts = text.rstrip(b"\n").split(b" ", 3)
        if len(parts) == 4 and (time := parts[0].decode(errors="replace")) >= since:
            yield LogLine(time, parts[1].decode(errors="replace"), parts[2] == b"F", parts[3])


def _seek_tail(files: Sequence[BinaryIO], lines: int) -> None:
    """Move to the last so many lines of all files."""
    for file in reversed(files):
        lines -= _seek_tail_of(file, lines)


def _seek_tail_of(file: BinaryIO, lines: int) -> int:
    """Move to the last so many lines of a file; return how many it has."""
    position = end = file.seek(0, os.SEEK_END)
    found = 0
    while position > 0 and lines > 0:
        size = min(_BLOCK, position)
        position = file.seek(position - size)
        block = file.read(size)
        if found + (count := block.count(b"\n")) > lines:
            index = len(block)
            for _ in range(lines - found + 1):
                index = block.rindex(b"\n", 0, index)
            file.seek(position + index + 1)
            return lines
        found += count
    file.seek(0 if lines > 0 else end)
    return found
