"""The archive program: its stores, and the log with its checksums."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from buckets import running_bucket
from konverge_operators.database.archive.base_backups import BaseBackup, Part, delete_backup, find_backups, unpack
from konverge_operators.database.archive.recovery import choose_backup
from konverge_operators.database.archive.s3 import S3Bucket, signed_headers
from konverge_operators.database.archive.segments import get_segment, put_segment, required_segments
from konverge_operators.database.archive.stores import ArchiveError, Directory

PATH = "orders/uid"
SEGMENT = "00000001000000000000000A"


@pytest.fixture
def store(tmp_path: Path) -> Directory:
    (tmp_path / "backup").mkdir()
    return Directory(tmp_path / "backup")


def segment(directory: Path, content: bytes, name: str = SEGMENT) -> Path:
    path = directory / name
    path.write_bytes(content)
    return path


def backup(name: str, first: str = SEGMENT, *, age: int = 0, path: str = PATH, major: str = "18") -> BaseBackup:
    completed = datetime(2026, 11, 16, 12, tzinfo=UTC) - timedelta(hours=age)
    return BaseBackup(
        name=name,
        path=path,
        started=completed,
        completed=completed,
        major=major,
        wal=True,
        first=first,
        last=first,
        parts=(Part(f"{PATH}/base/{name}/part-00000", 4, "x"),),
    )


def test_the_log_is_stored_once_and_comes_back_as_it_was(store: Directory, tmp_path: Path) -> None:
    file = segment(tmp_path, b"log" * 1000)
    put_segment(store, PATH, file)
    put_segment(store, PATH, file)
    target = tmp_path / "RECOVERYXLOG"
    assert get_segment(store, PATH, SEGMENT, target)
    assert target.read_bytes() == file.read_bytes()
    assert not get_segment(store, PATH, "00000001000000000000000B", target)


def numbered(timeline: int, position: int) -> str:
    return f"{timeline:08X}{0:08X}{position:08X}"


@pytest.mark.parametrize(
    ("stored", "asked", "is_error"),
    [
        (["1/1", "1/2", "1/4"], "1/3", True),
        (["1/1", "1/2", "2/4"], "1/3", True),  # the first primary was lost before it had archived it
        (["1/1", "1/2", "2/4"], "2/3", True),
        (["1/1", "1/2"], "1/3", False),
        (["1/1", "2/2"], "2/3", False),
        (["1/1", "2/2", "1/4"], "1/3", False),  # the second timeline is replayed from there
        (["1/1", "2/2", "1/4"], "2/3", False),
    ],
)
def test_a_missing_file_is_the_end_of_the_log_only_if_there_is_no_later_one(
    store: Directory, tmp_path: Path, stored: list[str], asked: str, is_error: bool
) -> None:
    for one in stored:
        put_segment(store, PATH, segment(tmp_path, one.encode(), numbered(*map(int, one.split("/")))))
    put_segment(store, PATH, segment(tmp_path, b"", "00000002.history"))
    put_segment(store, PATH, segment(tmp_path, b"", f"{numbered(2, 9)}.partial"))
    name = numbered(*map(int, asked.split("/")))
    if is_error:
        with pytest.raises(ArchiveError, match=rf"{name} is missing .* or to a time before 20"):
            get_segment(store, PATH, name, tmp_path / "target")
    else:
        assert not get_segment(store, PATH, name, tmp_path / "target")
    assert not get_segment(store, PATH, "00000003.history", tmp_path / "target")


def test_another_content_under_the_name_of_a_stored_file_is_refused(store: Directory, tmp_path: Path) -> None:
    put_segment(store, PATH, segment(tmp_path, b"one"))
    with pytest.raises(ArchiveError, match="with another content"):
        put_segment(store, PATH, segment(tmp_path, b"other"))


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_damaged_file_is_never_the_end_of_the_log(store: Directory, tmp_path: Path, damage: str) -> None:
    put_segment(store, PATH, segment(tmp_path, os.urandom(1000)))
    (stored,) = (tmp_path / "backup").rglob("*.gz")
    content = bytearray(stored.read_bytes())
    content[500] ^= 1
    stored.write_bytes(content if damage == "flip" else content[:500])
    with pytest.raises(ArchiveError, match="is damaged"):
        get_segment(store, PATH, SEGMENT, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_damaged_compressed_file_is_found_or_has_its_content(store: Directory, tmp_path: Path) -> None:
    """A few bits of the format mean nothing."""
    log, target = b"one line of a log that is compressed\n" * 100, tmp_path / "target"
    put_segment(store, PATH, segment(tmp_path, log))
    (stored,) = (tmp_path / "backup").rglob("*.gz")
    content = stored.read_bytes()
    found = 0
    for position in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        stored.write_bytes(damaged)
        try:
            assert get_segment(store, PATH, SEGMENT, target)
        except ArchiveError:
            found += 1
        else:
            assert target.read_bytes() == log
    assert found > 4 * len(content)


def test_a_target_that_cannot_be_written_ends_a_recovery(store: Directory, tmp_path: Path) -> None:
    put_segment(store, PATH, segment(tmp_path, b"log"))
    environment = {**os.environ, "ARCHIVE_URL": f"file://{tmp_path}/backup", "ARCHIVE_PATH": PATH}
    program = [sys.executable, "-m", "konverge_operators.database.archive", "wal-get", SEGMENT, "missing/target"]
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 200, "1 would be the end of the log"
    assert b"archive: FileNotFoundError: " in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_destination_that_is_not_mounted_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="not there"):
        get_segment(Directory(tmp_path / "missing"), PATH, SEGMENT, tmp_path / "target")


@pytest.mark.parametrize(("command", "code"), [(["wal-put", SEGMENT], 1), (["wal-get", SEGMENT, "target"], 200)])
def test_postgresql_tries_again_what_is_not_stored_and_ends_a_recovery_that_cannot_go_on(
    tmp_path: Path, command: list[str], code: int
) -> None:
    """A higher code of `archive_command` ends the archiver, which then counts no failure."""
    segment(tmp_path, b"log")
    environment = {**os.environ, "ARCHIVE_URL": f"file://{tmp_path}/missing", "ARCHIVE_PATH": PATH}
    program = [sys.executable, "-m", "konverge_operators.database.archive", *command]
    assert subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode == code


def test_the_files_of_a_range_of_the_log() -> None:
    assert required_segments(2, "0/FF000028", "1/1000100", 16 * 1024 * 1024) == [
        "0000000200000000000000FF",
        "000000020000000100000000",
        "000000020000000100000001",
    ]


def test_deleting_a_backup_keeps_the_log_that_the_others_need(store: Directory, tmp_path: Path) -> None:
    names = [f"0000000{timeline}0000000000000{number:03X}" for timeline in (1, 2) for number in (1, 2, 3)]
    for name in (*names, "00000002.history"):
        put_segment(store, PATH, segment(tmp_path, name.encode(), name))
    for one in (backup("old", names[0], age=2), backup("new", names[1])):
        store.put(f"{PATH}/base/{one.name}/backup.json", one.document())
        store.put(f"{PATH}/base/{one.name}/part-00000", b"data")
    delete_backup(store, PATH, "old")
    left = {one.key.rpartition("/")[2].partition("-")[0] for one in store.list(f"{PATH}/wal/")}
    assert left == {"00000002.history", names[1], names[2], names[4], names[5]}
    delete_backup(store, PATH, "new")
    assert not find_backups(store, PATH)
    assert len(store.list(f"{PATH}/wal/")) == 5


def test_the_log_of_an_earlier_major_goes_with_its_last_backup(store: Directory, tmp_path: Path) -> None:
    old, new = (backup(f"of-{major}", path=f"orders/uid/{major}", major=major) for major in ("16", "18"))
    for one in (old, new):
        put_segment(store, one.path, segment(tmp_path, one.name.encode()))
        store.put(f"{one.path}/base/{one.name}/backup.json", one.document())
    delete_backup(store, new.path, "of-18")
    assert store.list(f"{new.path}/wal/")
    store.put(f"{new.path}/base/{new.name}/backup.json", new.document())
    delete_backup(store, old.path, "of-16")
    assert not store.list(f"{old.path}/")
    assert store.list(f"{new.path}/wal/")


def test_a_part_with_another_checksum_is_refused(store: Directory, tmp_path: Path) -> None:
    store.put(f"{PATH}/base/first/part-00000", b"damaged")
    with pytest.raises(ArchiveError, match="the checksum of part-00000 differs"):
        unpack(store, backup("first").parts, tmp_path)


def test_the_newest_backup_before_the_time_is_chosen() -> None:
    found = [backup("old", age=5), backup("new", age=1)]
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert choose_backup(found, "", None).name == "new"
    assert choose_backup(found, "", noon - timedelta(hours=2)).name == "old"
    assert choose_backup(found, "old", noon).name == "old"
    with pytest.raises(ArchiveError, match="no backup ended before"):
        choose_backup(found, "", noon - timedelta(hours=6))
    with pytest.raises(ArchiveError, match="has no backup other"):
        choose_backup(found, "other", None)


def test_a_signature_is_that_of_the_example_in_the_documentation_of_s3() -> None:
    """GET /?prefix=J&max-keys=2 of "Authenticating Requests (AWS Signature Version 4)": list objects."""
    bucket = S3Bucket(
        endpoint="https://s3.amazonaws.com",
        bucket="examplebucket",
        prefix="",
        region="us-east-1",
        access_key="AKIAIOSFODNN7EXAMPLE",
        secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    )
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    at = datetime(2013, 5, 24, tzinfo=UTC)
    headers = signed_headers(bucket, "GET", "/", "max-keys=2&prefix=J", empty, "examplebucket.s3.amazonaws.com", at)
    assert headers["Authorization"].endswith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
    assert "wJalr" not in repr(bucket)


def test_a_bucket_stores_lists_and_deletes_what_it_was_given() -> None:
    with running_bucket() as bucket:
        keys = [f"orders/a b+{number:03}" for number in range(130)]
        for key in keys:
            bucket.store.put(key, key.encode())
        assert [one.key for one in bucket.store.list("orders/")] == keys
        assert bucket.store.get(keys[7]) == keys[7].encode()
        for key in keys[1:]:
            bucket.store.delete(key)
        assert [one.key for one in bucket.store.list("")] == keys[:1]
        with pytest.raises(ArchiveError, match="status 404 NoSuchKey"):
            bucket.store.get("missing")
        with pytest.raises(ArchiveError, match="status 403 SignatureDoesNotMatch"):
            replace(bucket.store, secret_key="another").get(keys[0])
        with pytest.raises(ArchiveError, match="status 403 InvalidAccessKeyId"):
            replace(bucket.store, access_key="another").get(keys[0])
    with pytest.raises(ArchiveError, match="does not answer"):
        bucket.store.get(keys[0])
