"""Files that are replaced while they are in use."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from konverge.client.access.files import NamedFile, RotatingValue
from konverge.client.access.locations import Location
from konverge.errors import ConfigError


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


PLACE = Location("kubeconfig x", "users[0].user.tokenFile")


def lowercase(content: bytes) -> str:
    text = content.decode().strip()
    if not text.islower():
        raise PLACE.error("expected lower case")
    return text


def watched(path: Path, clock: Clock) -> RotatingValue[str]:
    return RotatingValue([NamedFile(path, PLACE)], lowercase, clock=clock, reload_interval=10)


def test_new_content_is_read_after_the_interval_and_not_before(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("one")
    rotating = watched(path, clock)
    assert rotating.get() == "one"

    path.write_text("two")
    clock.now = 9.9
    assert rotating.get() == "one"
    clock.now = 10
    assert rotating.get() == "two"


def test_a_forced_reload_reads_it_immediately(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("one")
    rotating = watched(path, clock)
    rotating.get()

    path.write_text("two")

    assert rotating.renew() == "two"


def test_the_value_is_the_same_object_until_the_content_changes(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("one")
    rotating = RotatingValue([NamedFile(path, PLACE)], bytes, clock=clock, reload_interval=10)
    first = rotating.get()

    clock.now = 10
    path.write_text("one")

    assert rotating.get() is first


def test_a_swapped_symbolic_link_is_seen_although_size_and_date_are_the_same(tmp_path: Path) -> None:
    """How a kubelet rotates: token -> ..data/token, ..data -> a new directory."""
    clock = Clock()
    for name, content in (("v1", "one"), ("v2", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(content)
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "token").symlink_to("..data/token")
    rotating = watched(tmp_path / "token", clock)
    assert rotating.get() == "one"

    (tmp_path / "..new").symlink_to("v2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    clock.now = 10

    assert rotating.get() == "two"


@pytest.mark.parametrize("breakage", ["missing", "empty", "bad"])
def test_a_bad_rotation_keeps_the_last_good_content_and_is_logged_once(
    tmp_path: Path, breakage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("good")
    rotating = watched(path, clock)
    rotating.get()

    if breakage == "missing":
        path.unlink()
    else:
        path.write_text(" \n" if breakage == "empty" else "BAD")
    for look in range(1, 4):
        clock.now = look * 10
        assert rotating.get() == "good"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "kubeconfig x: " in caplog.records[0].__dict__["error"]

    path.write_text("better")
    clock.now = 40
    assert rotating.get() == "better"


def test_the_first_read_raises_the_error(tmp_path: Path) -> None:
    rotating = watched(tmp_path / "token", Clock())

    with pytest.raises(ConfigError, match="No such file or directory, at users"):
        rotating.get()
    (tmp_path / "token").write_text("late")
    assert rotating.get() == "late"


def test_a_value_of_two_files_changes_only_when_they_match(tmp_path: Path) -> None:
    """A certificate is written before its key: in between the old pair stays."""

    def pair(left: bytes, right: bytes) -> bytes:
        if left != right:
            raise PLACE.error("they do not fit")
        return left

    clock = Clock()
    paths = [tmp_path / "certificate", tmp_path / "key"]
    for path in paths:
        path.write_text("old")
    rotating = RotatingValue([NamedFile(path, PLACE) for path in paths], pair, clock=clock, reload_interval=10)
    assert rotating.get() == b"old"

    paths[0].write_text("new")
    clock.now = 10
    assert rotating.get() == b"old"
    paths[1].write_text("new")
    clock.now = 20
    assert rotating.get() == b"new"


def test_a_value_of_bytes_alone_is_built_once() -> None:
    made: list[bytes] = []

    def make(content: bytes) -> bytes:
        made.append(content)
        return content

    clock = Clock()
    rotating = RotatingValue([b"fixed"], make, clock=clock)
    for clock.now in (0, 1e9):
        assert rotating.get() == b"fixed"

    assert made == [b"fixed"]
