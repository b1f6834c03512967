"""The audit of a run: which writes reached the server, which objects they created and deleted, and for whom."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from konverge.wire.messages import Request
from konverge_cluster.storage import Entry, Storage

__all__ = ["OPERATOR", "USER", "Audit", "Target", "Write", "is_background"]

USER: Final = "user"
OPERATOR: Final = "operator"
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_BACKGROUND: Final = {"events", "leases", "selfsubjectaccessreviews", "subjectaccessreviews"}


@dataclass(frozen=True, slots=True)
class Target:
    """The object or the collection of a path."""

    group: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, path: str) -> Target:
        """Return the target of a path of the API; that of a path of discovery has no plural."""
        root, group, *rest = [*path.strip("/").split("/"), "", ""]
        rest = [one for one in ([group, *rest] if root == "api" else rest) if one][1:]
        group = group if root == "apis" else ""
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource, *_ = [*rest, "", "", ""]
        return cls(group, plural, namespace, name, subresource)

    @property
    def kind(self) -> str:
        """The kind, as a client resolves it: "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def entry(self, storage: Storage) -> Entry | None:
        """Return the stored object, None when there is none."""
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return storage.collection((self.group, self.plural)).get(key)

    def __str__(self) -> str:
        return f"{self.plural} {self.namespace}/{self.name}" if self.namespace else f"{self.plural} {self.name}"


@dataclass(frozen=True, slots=True)
class Write:
    """One write that reached the server; `changed` reports whether an object changed."""

    number: int
    process: int
    time: float
    method: str
    target: Target
    status: int
    changed: bool

    def __str__(self) -> str:
        subresource = f"/{self.target.subresource}" if self.target.subresource else ""
        return f"{self.method} {self.target}{subresource} ({self.status})"


@dataclass
class Audit:
    """What the user and the operator did. `uids` names each object they created: "configmaps default/a #1".

    Objects with a generated name are not numbered: "pods default/web-*".
    """

    storage: Storage
    writes: list[Write] = field(default_factory=list)
    creators: dict[str, str] = field(default_factory=dict)  # by uid
    uids: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    applied: dict[Target, Mapping[str, Any]] = field(default_factory=dict)  # the last document of each apply
    plain: dict[int, Any] = field(default_factory=dict)  # for snapshots: each state of an object, by its revision
    assigned: dict[str, str] = field(default_factory=dict)  # for snapshots: generated names and addresses of pods
    _deleted: set[str] = field(default_factory=set)

    def created(self, by: str) -> set[str]:
        """Return the uids of the objects that the user or the operator has created."""
        return {uid for uid, creator in self.creators.items() if creator == by}

    def name_of(self, uid: str) -> str:
        """Return plural, namespace and name of an object, as in `counts`."""
        return re.sub(r" #\d+$", "", self.uids[uid])

    def without_uids(self, text: str) -> str:
        """Return a text in which each uid is replaced by the name of its object."""
        return _UID.sub(lambda found: f"<{self.uids.get(found[0], 'uid')}>", text)

    def names_in(self, namespace: str) -> list[str]:
        """Return the names of the objects in a namespace that the operator has created, as in `counts`."""
        own = self.created(OPERATOR)
        return [
            self.name_of(entry.uid)
            for collection in self.storage
            for entry in collection.entries()
            if entry.uid in own and entry.key.startswith(f"{namespace}/")
        ]

    def record(self, by: str, request: Request, status: int, body: bytes) -> None:
        """Record a create or an apply that reached the server."""
        target = Target.of(request.path)
        if status == 201 and not target.subresource:
            metadata = msgspec.json.decode(body)["metadata"]
            self._record_create(by, target, metadata)
        if by == OPERATOR and status < 300 and _is_apply(request) and not target.subresource:
            self.applied[target] = msgspec.json.decode(request.body)

    def record_delete(self, target: Target, before: Entry | None) -> None:
        """Record that the object is deleted for the operator, once for each object."""
        if before is not None and before.uid not in self._deleted:
            self._deleted.add(before.uid)
            self.counts[f"delete {self._general_name(target, msgspec.json.decode(before.raw)['metadata'])}"] += 1

    def _record_create(self, by: str, target: Target, metadata: Mapping[str, Any]) -> None:
        name = self._general_name(target, metadata)
        uid = metadata["uid"]
        number = 1 + sum(self.name_of(one) == name for one in self.uids)
        is_generated = bool(metadata.get("generateName"))
        self.creators[uid], self.uids[uid] = by, name if is_generated else f"{name} #{number}"
        if is_generated:
            self.assigned[metadata["name"]] = f"<{metadata['generateName']}*>"
        if by == OPERATOR:
            self.counts[f"create {name}"] += 1

    def _general_name(self, target: Target, metadata: Mapping[str, Any]) -> str:
        """Return plural, namespace and name; of a generated name the part that was given, and a uid in it by name."""
        prefix = metadata.get("generateName", "")
        name = f"{prefix}*" if prefix else self.without_uids(metadata["name"])
        namespace = metadata.get("namespace", "")
        return f"{target.plural} {namespace}/{name}" if namespace else f"{target.plural} {name}"


def is_background(request: Request) -> bool:
    """Report whether a request is for an event, a lease, an access review or discovery."""
    return Target.of(request.path).plural in ("", *_BACKGROUND)


def _is_apply(request: Request) -> bool:
    return any(value.startswith("application/apply-patch") for value in request.headers.values())
