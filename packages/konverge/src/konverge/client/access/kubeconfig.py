"""kubeconfig files, read and merged as kubectl does.

Rules, all of them kubectl's:

1. Of several files the first to name a cluster, user or context wins, whole: entries are never mixed. The first that
   sets current-context wins. Files that are not there are skipped, empty ones count for nothing.
2. A relative path is relative to the file that it stands in. `~` is a plain character.
3. Every entry is checked for its form, also those that are not used. Fields that nobody knows are ignored.
4. A name that comes twice in one file is an error.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from konverge.client.access.documents import parse_document
from konverge.client.access.files import NamedFile, read_bounded
from konverge.client.access.places import Place
from konverge.errors import ConfigError

__all__ = ["Choice", "Cluster", "Context", "Entry", "Exec", "Kubeconfig", "User", "read_kubeconfig"]

FILE_LIMIT = 8 << 20
T = TypeVar("T")


class _Section(msgspec.Struct, rename="kebab", frozen=True, kw_only=True):
    """A mapping of the file. It may hold secrets, so only the names of its fields are shown."""

    def __repr__(self) -> str:
        fields = (name for name in self.__struct_fields__ if getattr(self, name) is not None)
        return f"{type(self).__name__}({', '.join(fields)})"


class Extension(_Section, frozen=True):
    name: str | None = None
    extension: Any = None


class Cluster(_Section, frozen=True):
    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[Extension | None] | None = None


class EnvVar(_Section, frozen=True):
    name: str | None = None
    value: str | None = None


class Exec(_Section, frozen=True, rename="camel"):
    api_version: str | None = None
    command: str | None = None
    args: list[str | None] | None = None
    env: list[EnvVar | None] | None = None
    install_hint: str | None = None
    interactive_mode: str | None = None
    provide_cluster_info: bool | None = None


class User(_Section, frozen=True):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    as_user: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str | None] | None = None
    as_user_extra: dict[str, list[str | None] | None] | None = None
    auth_provider: dict[str, Any] | None = None
    exec: Exec | None = None


class Context(_Section, frozen=True):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class NamedCluster(_Section, frozen=True):
    name: str | None = None
    cluster: Cluster | None = None


class NamedUser(_Section, frozen=True):
    name: str | None = None
    user: User | None = None


class NamedContext(_Section, frozen=True):
    name: str | None = None
    context: Context | None = None


class _Document(_Section, frozen=True):
    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    kind: str | None = None
    current_context: str | None = None
    clusters: list[NamedCluster | None] | None = None
    users: list[NamedUser | None] | None = None
    contexts: list[NamedContext | None] | None = None


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A cluster, user or context with its place; paths in it are relative to `directory`."""

    name: str
    value: T
    place: Place
    directory: Path

    def content(self, name: str, data: str | None, path: str | None) -> bytes | NamedFile | None:
        """Return what the setting `name` holds: the bytes of `<name>-data`, else the file that it names, else None."""
        if data:
            return decoded(data, self.place.at(f"{name}-data"))
        return NamedFile(self.path(name, path), self.place.at(name)) if path else None

    def path(self, name: str, path: str) -> Path:
        """Return the path that the setting `name` means."""
        longest = max(len(part) for part in path.split("/"))
        if "\n" in path or path.startswith("eyJ") or longest > 128:
            # Likely the secret itself in the wrong field: an error about a missing file would show it.
            raise self.place.at(name).error("expected the path of a file, got what looks like its content")
        return Path(os.path.normpath(self.directory / path))


@dataclass(frozen=True, slots=True)
class Choice:
    """What one context stands for. Without a user, requests are anonymous."""

    context: Entry[Context]
    cluster: Entry[Cluster]
    user: Entry[User] | None


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One or more files, merged."""

    files: tuple[str, ...]
    current_context: str
    contexts: Mapping[str, Entry[Context]]
    clusters: Mapping[str, Entry[Cluster]]
    users: Mapping[str, Entry[User]]

    @property
    def empty(self) -> bool:
        """True when no file was there, or none held anything."""
        return not (self.contexts or self.clusters or self.users or self.current_context)

    def choose(self, context: str | None = None) -> Choice:
        """Look up a context, the current one when none is named, and what it refers to."""
        here = Place(f"kubeconfig {os.pathsep.join(self.files)}")
        if not context and not self.current_context:
            raise here.at("current-context").error("no context is chosen", f"name one: {_names(self.contexts)}")
        asked = here if context else here.at("current-context")
        chosen = _find(self.contexts, "context", context or self.current_context, asked)
        cluster = _find(self.clusters, "cluster", chosen.value.cluster or "", chosen.place.at("cluster"))
        user = chosen.value.user
        return Choice(chosen, cluster, _find(self.users, "user", user, chosen.place.at("user")) if user else None)


def read_kubeconfig(paths: Sequence[str | os.PathLike[str]], *, skip_missing: bool = True) -> Kubeconfig:
    """Read and merge files, the first first.

    Raises: ConfigError for the first thing that is wrong in any of them.
    """
    merged = Kubeconfig(tuple(str(path) for path in paths), "", {}, {}, {})
    for path in dict.fromkeys(Path(path) for path in paths):
        try:
            merged = _merged(merged, _read(path))
        except ConfigError as error:
            if not (skip_missing and isinstance(error.__cause__, FileNotFoundError)):
                raise
    return merged


def decoded(data: str, place: Place) -> bytes:
    """Decode base64 as a kubeconfig holds it: padded, with or without line breaks."""
    try:
        return base64.b64decode(re.sub(r"[\r\n]", "", data), validate=True)
    except (binascii.Error, ValueError):
        raise place.error("expected base64") from None


def _read(path: Path) -> Kubeconfig:
    place = Place(f"kubeconfig {path}")
    document = parse_document(read_bounded(path, place, limit=FILE_LIMIT), place)
    typed = _typed({} if document is None else document, place)
    if (typed.api_version or "v1") != "v1" or (typed.kind or "Config") != "Config":
        raise place.error("expected apiVersion v1 and kind Config")
    directory = Path(os.path.abspath(path)).parent

    def entries(field: str, inner: str, kind: type[T]) -> dict[str, Entry[T]]:
        found: dict[str, Entry[T]] = {}
        for index, named in enumerate(getattr(typed, field) or ()):
            at = Place(place.file, f"{field}[{index}]")
            name = (named and named.name) or ""
            if name in found:
                raise at.at("name").error(f"the name {name!r} comes twice")
            found[name] = Entry(name, (named and getattr(named, inner)) or kind(), at.at(inner), directory)
        return found

    return Kubeconfig(
        (str(path),),
        typed.current_context or "",
        entries("contexts", "context", Context),
        entries("clusters", "cluster", Cluster),
        entries("users", "user", User),
    )


def _merged(first: Kubeconfig, second: Kubeconfig) -> Kubeconfig:
    return Kubeconfig(
        first.files,
        first.current_context or second.current_context,
        {**second.contexts, **first.contexts},
        {**second.clusters, **first.clusters},
        {**second.users, **first.users},
    )


_WORDS = {
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "int": "a number",
    "float": "a number",
    "null": "nothing",
}


# "Expected `str | null`, got `int` - at `$.users[0].user.token`", and "- at `key` in `$...`" for the key of a mapping.
_COMPLAINT = re.compile(r"Expected `(\w+)(?: \| null)?`(?:, got `(\w+)`)?(?: - at (`key` in )?`\$\.?(.*)`)?")


def _typed(document: object, place: Place) -> _Document:
    try:
        return msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        complaint = _COMPLAINT.fullmatch(str(error))
    if complaint is None:
        raise place.error("not the form of a kubeconfig")
    expected, got, key, field = complaint.groups("")
    advice = "put it in quotes" if expected == "str" and got in ("int", "float", "bool") else ""
    what = f"expected {_WORDS.get(expected, expected)}{' as key' if key else ''}"
    raise Place(place.file, field).error(f"{what}, got {_WORDS.get(got, got)}" if got else what, advice)


def _find(entries: Mapping[str, Entry[T]], kind: str, name: str, place: Place) -> Entry[T]:
    if not name:
        raise place.error(f"no {kind} is named", f"there are: {_names(entries)}")
    if name not in entries:
        raise place.error(f"there is no {kind} {name!r}", f"there are: {_names(entries)}")
    return entries[name]


def _names(entries: Iterable[str]) -> str:
    names = sorted(entries)
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") if names else "none"
