"""Run an external program: find it, set a deadline, limit its output, kill its children."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from konverge.errors import ConfigError

__all__ = ["OUTPUT_LIMIT", "find_program", "run_program"]

OUTPUT_LIMIT = 1 << 20
"""The limit of the output of a program in bytes."""


def find_program(command: str, search_path: str) -> str | None:
    """Return the path of a program: unchanged if it contains a slash, else found on the search path.

    Relative entries of the search path are ignored, so that a bare name never runs a program of the working directory.
    """
    if os.sep in command:
        return command if Path(command).exists() else None
    found = shutil.which(command, path=search_path)
    return found if found is not None and os.path.isabs(found) else None


async def run_program(
    arguments: Sequence[str], *, environ: Mapping[str, str], interactive: bool, deadline: float
) -> bytes:
    """Run a program to its end and return its standard output.

    An interactive program inherits standard input. Any other has none, and a session of its own, so that its child
    processes can be killed with it.

    Raises:
        ConfigError: it cannot be started, fails, prints too much, or is not done at the deadline.
    """
    async with _pipe() as (reader, write_end):
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=write_end,
                env=dict(environ),
                start_new_session=not interactive,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a NUL character in its arguments or environment"
            raise ConfigError(f"it cannot be started: {reason}") from None
        finally:
            os.close(write_end)
        try:
            async with asyncio.timeout(deadline):
                output = await _read_all(reader)
                status = await process.wait()
        except BaseException as error:
            # The deadline, too much output, or the cancellation of the request that needs the output.
            await _kill(process, whole_session=not interactive)
            if isinstance(error, TimeoutError):
                raise ConfigError(f"it was not done after {deadline:g} s") from None
            raise
    if status != 0:
        result = f"exited with status {status}" if status > 0 else f"was killed by signal {-status}"
        raise ConfigError(f"it {result} (see its standard error)")
    return output


@contextlib.asynccontextmanager
async def _pipe() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """Open a pipe whose read end can be closed even while a child process keeps the write end open."""
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
    )
    try:
        yield reader, write_end
    finally:
        transport.close()


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    output = bytearray()
    while chunk := await reader.read(1 << 16):
        output += chunk
        if len(output) > OUTPUT_LIMIT:
            raise ConfigError(f"it printed more than {OUTPUT_LIMIT >> 10} KiB")
    return bytes(output)


async def _kill(process: asyncio.subprocess.Process, *, whole_session: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if whole_session:
            # Also if the program itself has exited: its children may still run, with the pipe open.
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()
