"""The files of volumes that come from objects: configMap, secret, downwardAPI and projected.

`volume_files` reads the objects, `write_files` writes a directory as the kubelet does: the files are symbolic links
through `..data`, a link to a directory that is replaced in one step. A program that reads while its source changes
reads either all old files or all new ones.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from konverge_cluster.processes.sources import MissingSource, PodFacts, Sources

__all__ = ["Owner", "VolumeFile", "is_file_volume", "volume_files", "write_files"]

_FILE_SOURCES: Final = ("configMap", "secret", "downwardAPI", "projected")
_DEFAULT_MODE: Final = 0o644
_DATA: Final = "..data"


@dataclass(frozen=True)
class VolumeFile:
    """The content and the mode of a file."""

    content: bytes
    mode: int


@dataclass(frozen=True)
class Owner:
    """Who owns the files of a volume; None leaves an id as it is."""

    uid: int | None = None
    gid: int | None = None


def is_file_volume(volume: Mapping[str, Any]) -> bool:
    """Report whether the files of a volume come from objects."""
    return any(source in volume for source in _FILE_SOURCES)


async def volume_files(volume: Mapping[str, Any], facts: PodFacts, sources: Sources) -> dict[str, VolumeFile]:
    """Return the files of a volume by their relative paths.

    Raises: MissingSource when an object or a key that is not optional does not exist.
    """
    if "projected" in volume:
        projected = volume["projected"]
        files: dict[str, VolumeFile] = {}
        for one in projected.get("sources") or ():
            files |= await _source_files(one, projected.get("defaultMode", _DEFAULT_MODE), facts, sources)
        return files
    (kind,) = [one for one in _FILE_SOURCES if one in volume]
    source = volume[kind] or {}
    named = {"name": source.get("secretName") or source.get("name", "")}
    return await _source_files({kind: {**source, **named}}, source.get("defaultMode", _DEFAULT_MODE), facts, sources)


async def _source_files(
    source: Mapping[str, Any], mode: int, facts: PodFacts, sources: Sources
) -> dict[str, VolumeFile]:
    if config_map := source.get("configMap"):
        found = await sources.config_map(config_map["name"], optional=config_map.get("optional", False))
        return _selected(found, config_map, mode)
    if secret := source.get("secret"):
        found = await sources.secret(secret["name"], optional=secret.get("optional", False))
        return _selected(found, secret, mode)
    if token := source.get("serviceAccountToken"):
        text = await sources.token(facts.pod, token.get("audience", ""), token.get("expirationSeconds"))
        return {token["path"]: VolumeFile(text.encode(), mode)}
    if "downwardAPI" in source:
        items = (source["downwardAPI"] or {}).get("items") or ()
        return {one["path"]: VolumeFile(_downward(one, facts), one.get("mode", mode)) for one in items}
    raise MissingSource(f"volume source {next(iter(source), '')!r} is not supported by process nodes")


def _selected(found: Mapping[str, bytes] | None, source: Mapping[str, Any], mode: int) -> dict[str, VolumeFile]:
    if found is None:
        return {}
    items = source.get("items")
    if not items:
        return {name: VolumeFile(content, mode) for name, content in found.items()}
    files = {}
    for one in items:
        if one["key"] in found:
            files[one["path"]] = VolumeFile(found[one["key"]], one.get("mode", mode))
        elif not source.get("optional", False):
            raise MissingSource(f"references non-existent config key: {one['key']}")
    return files


def _downward(item: Mapping[str, Any], facts: PodFacts) -> bytes:
    if reference := item.get("fieldRef"):
        return facts.field(reference["fieldPath"]).encode()
    return facts.resource(item["resourceFieldRef"]).encode()


def write_files(directory: Path, files: Mapping[str, VolumeFile], owner: Owner) -> None:
    """Replace the files of a directory in one step; the directory must exist."""
    new = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    new.chmod(0o755)
    for name, file in files.items():
        _write_file(new, name, file, owner)
    old = _target(directory)
    link = directory / "..data_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(new.name)
    link.replace(directory / _DATA)
    _link_names(directory, {name.split("/")[0] for name in files})
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _write_file(directory: Path, name: str, file: VolumeFile, owner: Owner) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    mode = file.mode | (0o440 if owner.gid is not None else 0)
    path.chmod(mode & 0o777)
    if owner.uid is not None or owner.gid is not None:
        with suppress(PermissionError):
            os.chown(path, -1 if owner.uid is None else owner.uid, -1 if owner.gid is None else owner.gid)


def _target(directory: Path) -> Path | None:
    with suppress(OSError):
        return directory / os.readlink(directory / _DATA)
    return None


def _link_names(directory: Path, names: Iterable[str]) -> None:
    wanted = set(names)
    for entry in directory.iterdir():
        if not entry.name.startswith("..") and entry.name not in wanted:
            entry.unlink()
    for name in wanted:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"{_DATA}/{name}")
