"""kubeconfig files, read and merged as kubectl does.

Rules, all of them kubectl's:

1. If several files have an entry of the same name, the first file wins; entries are not merged. The first file that
   sets current-context wins. Missing and empty files are skipped.
2. A relative path is relative to its file. `~` has no special meaning.
3. The form of every entry is checked, even of unused ones. Unknown fields are ignored.
4. A name that occurs twice in one file is an error.
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
from konverge.client.access.locations import Location
from konverge.errors import ConfigError

__all__ = ["Cluster", "Context", "Entry", "Exec", "Kubeconfig", "ResolvedContext", "User", "read_kubeconfig"]

FILE_LIMIT = 8 << 20
T = TypeVar("T")


class _Section(msgspec.Struct, rename="kebab", frozen=True, kw_only=True):
    """A mapping of the file. It may contain secrets, so the repr shows only the names of its fields."""

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
    """A cluster, user or context with its location; its paths are relative to `directory`."""

    name: str
    value: T
    location: Location
    directory: Path

    def content(self, name: str, data: str | None, path: str | None) -> bytes | NamedFile | None:
        """Return the content of the setting `name`: the bytes of `<name>-data`, else its file, else None."""
        if data:
            return decoded(data, self.location.child(f"{name}-data"))
        return NamedFile(self.path(name, path), self.location.child(name)) if path else None

    def path(self, name: str, path: str) -> Path:
        """Return the absolute path of the setting `name`."""
        longest = max(len(part) for part in path.split("/"))
        if "\n" in path or path.startswith("eyJ") or longest > 128:
            # Probably the secret itself, in the wrong field: an error about a missing file would contain it.
            raise self.location.child(name).error(
                "expected the path of a file, got a value that looks like its content"
            )
        return Path(os.path.normpath(self.directory / path))


@dataclass(frozen=True, slots=True)
class ResolvedContext:
    """A context with its cluster and user. Without a user, requests are anonymous."""

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
        """True if no file exists or all are empty."""
        return not (self.contexts or self.clusters or self.users or self.current_context)

    def resolve(self, context: str | None = None) -> ResolvedContext:
        """Return a context, by default the current one, with its cluster and user."""
        files = Location(f"kubeconfig {os.pathsep.join(self.files)}")
        if not context and not self.current_context:
            raise files.child("current-context").error("no context is set", f"choose one of: {_names(self.contexts)}")
        location = files if context else files.child("current-context")
        chosen = _find(self.contexts, "context", context or self.current_context, location)
        cluster = _find(self.clusters, "cluster", chosen.value.cluster or "", chosen.location.child("cluster"))
        name = chosen.value.user
        user = _find(self.users, "user", name, chosen.location.child("user")) if name else None
        return ResolvedContext(chosen, cluster, user)


def read_kubeconfig(paths: Sequence[str | os.PathLike[str]], *, skip_missing: bool = True) -> Kubeconfig:
    """Read and merge files; earlier ones win.

    Raises: ConfigError for the first error in any of them.
    """
    merged = Kubeconfig(tuple(str(path) for path in paths), "", {}, {}, {})
    for path in dict.fromkeys(Path(path) for path in paths):
        try:
            merged = _merge(merged, _read(path))
        except ConfigError as error:
            if not (skip_missing and isinstance(error.__cause__, FileNotFoundError)):
                raise
    return merged


def decoded(data: str, location: Location) -> bytes:
    """Decode the base64 of a kubeconfig: padded, with or without line breaks."""
    try:
        return base64.b64decode(re.sub(r"[\r\n]", "", data), validate=True)
    except (binascii.Error, ValueError):
        raise location.error("expected base64") from None


def _read(path: Path) -> Kubeconfig:
    location = Location(f"kubeconfig {path}")
    document = parse_document(read_bounded(path, location, limit=FILE_LIMIT), location)
    typed = _convert({} if document is None else document, location)
    if (typed.api_version or "v1") != "v1" or (typed.kind or "Config") != "Config":
        raise location.error("expected apiVersion v1 and kind Config")
    directory = Path(os.path.abspath(path)).parent

    def entries(field: str, inner: str, kind: type[T]) -> dict[str, Entry[T]]:
        found: dict[str, Entry[T]] = {}
        for index, named in enumerate(getattr(typed, field) or ()):
            entry = Location(location.file, f"{field}[{index}]")
            name = (named and named.name) or ""
            if name in found:
                raise entry.child("name").error(f"the name {name!r} occurs twice")
            found[name] = Entry(name, (named and getattr(named, inner)) or kind(), entry.child(inner), directory)
        return found

    return Kubeconfig(
        (str(path),),
        typed.current_context or "",
        entries("contexts", "context", Context),
        entries("clusters", "cluster", Cluster),
        entries("users", "user", User),
    )


def _merge(first: Kubeconfig, second: Kubeconfig) -> Kubeconfig:
    return Kubeconfig(
        first.files,
        first.current_context or second.current_context,
        {**second.contexts, **first.contexts},
        {**second.clusters, **first.clusters},
        {**second.users, **first.users},
    )


_TYPE_NAMES = {
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "int": "a number",
    "float": "a number",
    "null": "nothing",
}


# "Expected `str | null`, got `int` - at `$.users[0].user.token`", and "- at `key` in `$...`" for the key of a mapping.
_VALIDATION_ERROR = re.compile(r"Expected `(\w+)(?: \| null)?`(?:, got `(\w+)`)?(?: - at (`key` in )?`\$\.?(.*)`)?")


def _convert(document: object, location: Location) -> _Document:
    try:
        return msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        match = _VALIDATION_ERROR.fullmatch(str(error))
    if match is None:
        raise location.error("it does not have the form of a kubeconfig")
    expected, got, key, field = match.groups("")
    advice = "put it in quotes" if expected == "str" and got in ("int", "float", "bool") else ""
    what = f"expected {_TYPE_NAMES.get(expected, expected)}{' as key' if key else ''}"
    raise Location(location.file, field).error(f"{what}, got {_TYPE_NAMES.get(got, got)}" if got else what, advice)


def _find(entries: Mapping[str, Entry[T]], kind: str, name: str, location: Location) -> Entry[T]:
    if not name:
        raise location.error(f"no {kind} is set", f"choose one of: {_names(entries)}")
    if name not in entries:
        raise location.error(f"there is no {kind} {name!r}", f"choose one of: {_names(entries)}")
    return entries[name]


def _names(entries: Iterable[str]) -> str:
    names = sorted(entries)
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") if names else "none"
