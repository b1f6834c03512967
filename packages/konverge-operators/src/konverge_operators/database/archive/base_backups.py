"""Base backups: a tar archive of the data directory in parts, streamed to the destination without a local copy.

A backup exists when its `backup.json` does. It is written last, after all parts were read again and verified.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from konverge_operators.database.archive.segments import delete_older_segments, find_segment, required_segments
from konverge_operators.database.archive.stores import ArchiveError, Store

__all__ = [
    "BaseBackup",
    "Part",
    "PartReader",
    "delete_backup",
    "delete_parts",
    "find_backups",
    "unpack",
    "verify_backup",
    "verify_files",
    "write_backup",
    "write_parts",
]

_PART: Final = 32 * 1024 * 1024
_READ: Final = 1024 * 1024
_GZIP: Final = 31  # a window of 32 KiB, with the header of gzip
_LAST_LINES: Final = 5


@dataclass(frozen=True)
class Part:
    """A part of the archive."""

    key: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class BaseBackup:
    """A backup that was verified. `first` and `last` are the files of the log that it needs at least."""

    name: str
    path: str
    started: datetime
    completed: datetime
    major: str
    wal: bool
    first: str
    last: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.parts)

    def document(self) -> bytes:
        """Return the content of `backup.json`."""
        fields: dict[str, Any] = asdict(self)
        times = {name: getattr(self, name).isoformat() for name in ("started", "completed")}
        return json.dumps({**fields, **times, "size": self.size}, indent=1).encode()

    @classmethod
    def read(cls, document: bytes) -> BaseBackup:
        """Return the backup of a `backup.json`."""
        fields: dict[str, Any] = json.loads(document)
        fields.pop("size")
        fields |= {name: datetime.fromisoformat(fields[name]) for name in ("started", "completed")}
        fields["parts"] = tuple(Part(**one) for one in fields["parts"])
        return cls(**fields)


def write_backup(store: Store, path: str, name: str, work: Path, *, wal: bool) -> BaseBackup:
    """Write a backup of the server of the environment (PGHOST, ...), and verify it in the directory `work`.

    Without `wal` the backup has the log that it needs in itself. A rest of an interrupted try is deleted first.
    """
    done = [one for one in find_backups(store, path) if one.name == name]
    if done:
        return done[0]
    delete_parts(store, path, name)
    started = datetime.now(UTC)
    parts = tuple(write_parts(store, f"{path}/base/{name}", _base_backup(wal=wal)))
    completed = datetime.now(UTC)
    with _temporary_copy(store, parts, work):
        verify_files(work, wal=wal)
        major = (work / "PG_VERSION").read_text().strip()
        first, last = _check_log(store, path, work, wal=wal)
    found = BaseBackup(
        name=name,
        path=path,
        started=started,
        completed=completed,
        major=major,
        wal=wal,
        first=first,
        last=last,
        parts=parts,
    )
    store.put(f"{path}/base/{name}/backup.json", found.document())
    return found


def verify_backup(store: Store, backup: BaseBackup, work: Path) -> None:
    """Read a backup from its destination and verify it: the checksum of each part, and each file by its manifest."""
    with _temporary_copy(store, backup.parts, work):
        verify_files(work, wal=backup.wal)
        _check_log(store, backup.path, work, wal=backup.wal)


def find_backups(store: Store, prefix: str) -> list[BaseBackup]:
    """Return the backups below a prefix, by the time of their end."""
    keys = [one.key for one in store.list(f"{prefix}/") if one.key.endswith("/backup.json")]
    return sorted((BaseBackup.read(store.get(key)) for key in keys), key=lambda one: one.completed)


def delete_backup(store: Store, path: str, name: str) -> None:
    """Delete a backup, and the log that none of the others needs.

    Without another backup all log is kept, unless the database was backed up in a later major version since.
    """
    store.delete(f"{path}/base/{name}/backup.json")  # first: what is half deleted is no backup
    delete_parts(store, path, name)
    if kept := find_backups(store, path):
        delete_older_segments(store, path, min((one.first for one in kept), key=lambda one: one[8:]))
    elif _is_past(store, path):
        for one in store.list(f"{path}/wal/"):
            store.delete(one.key)


def _is_past(store: Store, path: str) -> bool:
    """Report whether a path is that of an earlier major version than one with a backup."""
    root, _, major = path.rpartition("/")
    return major.isdigit() and any(int(one.major) > int(major) for one in find_backups(store, root))


def unpack(store: Store, parts: Sequence[Part], directory: Path) -> None:
    """Unpack the parts of a backup into a directory. A part whose checksum differs is an ArchiveError."""
    reader = io.BufferedReader(PartReader(store, parts), _READ)
    try:
        with tarfile.open(fileobj=reader, mode="r|") as archive:
            archive.extractall(directory, filter="data")
    except (tarfile.TarError, zlib.error) as error:
        raise ArchiveError(f"the backup is damaged: {error}") from error
    directory.chmod(0o700)


def verify_files(directory: Path, *, wal: bool) -> None:
    """Verify an unpacked backup with PostgreSQL's own program."""
    options = ["--no-parse-wal"] if wal else []
    result = subprocess.run(["pg_verifybackup", *options, str(directory)], capture_output=True, text=True, check=False)
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        raise ArchiveError(f"the backup is damaged: {'; '.join(lines[-_LAST_LINES:])}")


def _base_backup(*, wal: bool) -> list[str]:
    options = ["--pgdata=-", "--format=tar", "--checkpoint=fast", "--no-password", "--manifest-checksums=SHA256"]
    return ["pg_basebackup", *options, f"--wal-method={'none' if wal else 'fetch'}"]


def write_parts(store: Store, prefix: str, command: Sequence[str]) -> Iterator[Part]:
    """Run a program and store what it prints, compressed."""
    errors = Path(os.environ.get("TMPDIR", "/tmp")) / f"{command[0]}.log"
    with errors.open("wb") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process:
        assert process.stdout is not None
        try:
            for number, content in enumerate(_compressed(process.stdout)):
                key = f"{prefix}/part-{number:05}"
                store.put(key, content)
                yield Part(key, len(content), hashlib.sha256(content).hexdigest())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        lines = errors.read_text(errors="replace").strip().splitlines()
        raise ArchiveError(f"{command[0]}: {'; '.join(lines[-_LAST_LINES:])}")


def _compressed(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a stream compressed, in parts."""
    compressor, part = zlib.compressobj(1, wbits=_GZIP), bytearray()
    while block := stream.read(_READ):
        part += compressor.compress(block)
        if len(part) >= _PART:
            yield bytes(part)
            part.clear()
    part += compressor.flush()
    yield bytes(part)


class PartReader(io.RawIOBase):
    """The content of the parts, decompressed, each part verified before it is used."""

    def __init__(self, store: Store, parts: Sequence[Part]) -> None:
        self._store = store
        self._parts = iter(parts)
        self._decompressor = zlib.decompressobj(wbits=_GZIP)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            content = self._store.get(part.key)
            if hashlib.sha256(content).hexdigest() != part.sha256:
                raise ArchiveError(f"the backup is damaged: the checksum of {part.key.rpartition('/')[2]} differs")
            self._rest = self._decompressor.decompress(content)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


@contextmanager
def _temporary_copy(store: Store, parts: Sequence[Part], directory: Path) -> Generator[None]:
    """Unpack parts into a directory, and remove it at the end."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        unpack(store, parts, directory)
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _check_log(store: Store, path: str, directory: Path, *, wal: bool) -> tuple[str, str]:
    """Check that the archive has the log that a backup needs; return its first and last file."""
    manifest: dict[str, Any] = json.loads((directory / "backup_manifest").read_text())
    size = _segment_size(directory)
    names = [
        name
        for one in manifest["WAL-Ranges"]
        for name in required_segments(one["Timeline"], one["Start-LSN"], one["End-LSN"], size)
    ]
    missing = [name for name in names if wal and find_segment(store, path, name) is None]
    if missing:
        raise ArchiveError(f"the archive lacks {', '.join(missing)}, which the backup needs")
    return names[0], names[-1]


def _segment_size(directory: Path) -> int:
    result = subprocess.run(["pg_controldata", str(directory)], capture_output=True, text=True, check=True)
    found = re.search(r"Bytes per WAL segment: +(\d+)", result.stdout)
    assert found is not None, result.stdout
    return int(found[1])


def delete_parts(store: Store, path: str, name: str) -> None:
    """Delete everything that is stored of a backup."""
    for one in store.list(f"{path}/base/{name}/"):
        store.delete(one.key)
