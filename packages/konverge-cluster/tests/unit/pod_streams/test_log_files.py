"""Reading of logs: files as the shim of a container writes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from konverge_cluster.pod_streams.log_files import read_lines, read_log
from konverge_cluster.pod_streams.requests import LogOptions
from konverge_cluster.processes.supervisor.log_files import LogFile, OutputStream


def written(path: Path, *lines: str, limit: int = 10_000_000) -> LogFile:
    """Write lines to a log: "12 stdout F hello" is at second 12."""
    log = LogFile(str(path), limit)
    append(path, *lines)
    return log


def append(path: Path, *lines: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        for line in lines:
            second, _, rest = line.partition(" ")
            file.write(f"2026-01-02T03:04:{second}.000000000Z {rest}\n")


async def read(path: Path, done: Callable[[], bool] = lambda: True, **options: object) -> str:
    parts = [part async for part in read_log(path, LogOptions(**options), done)]  # type: ignore[arg-type]
    return b"".join(parts).decode()


async def test_both_streams_are_read_in_order(tmp_path: Path) -> None:
    written(tmp_path / "log", "01 stdout F one", "02 stderr F zwei ✓", "03 stdout F ").close()
    assert await read(tmp_path / "log") == "one\nzwei ✓\n\n"


async def test_parts_of_a_line_are_joined_and_have_one_time(tmp_path: Path) -> None:
    written(tmp_path / "log", "01 stdout P a b ", "02 stdout F c", "03 stdout P rest").close()
    assert await read(tmp_path / "log") == "a b c\nrest"
    expected = "2026-01-02T03:04:01.000000000Z a b c\n2026-01-02T03:04:03.000000000Z rest"
    assert await read(tmp_path / "log", timestamps=True) == expected


@pytest.mark.parametrize(
    ("lines", "expected"), [(0, ""), (1, "c\n"), (2, "b\nc\n"), (3, "a\nb\nc\n"), (9, "a\nb\nc\n")]
)
async def test_the_tail_has_so_many_lines(tmp_path: Path, lines: int, expected: str) -> None:
    written(tmp_path / "log", "01 stdout F a", "02 stdout F b", "03 stdout F c").close()
    assert await read(tmp_path / "log", tail_lines=lines) == expected


@pytest.mark.parametrize("lines", [1, 3, 4, 5, 6, 100])
async def test_the_tail_goes_back_into_the_rotated_file(tmp_path: Path, lines: int) -> None:
    written(tmp_path / "log.1", "01 stdout F a", "02 stdout F b", "03 stdout F c").close()
    written(tmp_path / "log", "04 stdout F d", "05 stdout F e").close()
    assert (await read(tmp_path / "log", tail_lines=lines)).split() == list("abcde")[-lines:]
    assert await read(tmp_path / "log") == "a\nb\nc\nd\ne\n"


async def test_the_tail_of_a_long_log_is_found(tmp_path: Path) -> None:
    written(tmp_path / "log", *(f"01 stdout F {number} {'x' * (number % 300)}" for number in range(3000))).close()
    for lines in (1, 699, 2999):
        numbers = [line.split()[0] for line in (await read(tmp_path / "log", tail_lines=lines)).splitlines()]
        assert numbers == [str(number) for number in range(3000 - lines, 3000)]


async def test_lines_before_a_time_are_left_out(tmp_path: Path) -> None:
    written(tmp_path / "log.1", "01 stdout F a", "02 stdout F b").close()
    written(tmp_path / "log", "03 stdout F c", "04 stdout F d").close()
    assert await read(tmp_path / "log", since="2026-01-02T03:04:02") == "b\nc\nd\n"
    assert await read(tmp_path / "log", since="2026-01-02T03:04:03.000001") == "d\n"


@pytest.mark.parametrize("limit", [1, 3, 4, 7, 8, 100])
async def test_the_output_ends_at_its_limit(tmp_path: Path, limit: int) -> None:
    written(tmp_path / "log", "01 stdout F abc", "02 stdout F def").close()
    assert await read(tmp_path / "log", limit_bytes=limit) == "abc\ndef\n"[:limit]


async def test_a_limit_in_a_long_log_is_exact(tmp_path: Path) -> None:
    written(tmp_path / "log", *(f"01 stdout F {'x' * 999}" for _ in range(300))).close()
    assert len(await read(tmp_path / "log", limit_bytes=200_001)) == 200_001


async def test_what_is_no_log_line_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\n\xff\xfe\none two\n2026 stdout F ok\n")
    assert await read(tmp_path / "log") == "ok\n"


async def test_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert await read(tmp_path / "none") == ""


async def test_a_line_without_an_end_is_not_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("2026 stdout F o")
    lines = read_lines(path, LogOptions(follow=True), lambda: False)
    assert await anext(lines) is None
    with path.open("a") as file:
        file.write("ne\n")
    line = await anext(lines)
    assert line is not None
    assert line.content == b"one"
    await lines.aclose()


class Follower:
    """A client that follows a log."""

    def __init__(self, path: Path, **options: object) -> None:
        self.text = ""
        self.done = False
        self.chunks = read_log(path, LogOptions(follow=True, **options), lambda: self.done)  # type: ignore[arg-type]
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        async for chunk in self.chunks:
            self.text += chunk.decode()

    async def settled(self) -> str:
        await asyncio.sleep(1)
        return self.text

    async def end(self) -> str:
        self.done = True
        await asyncio.wait_for(self.task, 5)
        return self.text


async def test_following_shows_what_is_written_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, "01 stdout F a", "02 stdout F b").close()
    follower = Follower(path, tail_lines=1)
    assert await follower.settled() == "b\n"
    append(path, "03 stderr F c")
    assert await follower.settled() == "b\nc\n"
    append(path, "04 stdout F last")
    assert await follower.end() == "b\nc\nlast\n"


async def test_following_a_log_that_does_not_exist_yet(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = Follower(path)
    assert await follower.settled() == ""
    written(path, "01 stdout F a").close()
    assert await follower.end() == "a\n"


async def test_following_a_log_that_is_removed_ends(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, "01 stdout F a").close()
    follower = Follower(path)
    assert await follower.settled() == "a\n"
    path.unlink()
    assert await follower.end() == "a\n"


async def test_following_loses_nothing_when_the_log_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(str(path), 2000)
    output = OutputStream("stdout", log)
    follower = Follower(path)
    for number in range(300):
        output.feed(f"{number}\n".encode())
        if number % 20 == 0:
            await asyncio.sleep(0.3)
    assert (tmp_path / "log.1").exists()
    assert (await follower.end()).split() == [str(number) for number in range(300)]
    log.close()


async def test_following_stops_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, "01 stdout F abc").close()
    follower = Follower(path, limit_bytes=6)
    assert await follower.settled() == "abc\n"
    append(path, "02 stdout F def")
    assert await follower.settled() == "abc\nde"
    assert follower.task.done()
