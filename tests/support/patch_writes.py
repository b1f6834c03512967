"""Writes to a real API server, and what the patch engines say of them beforehand.

Before each write the engine says what will come of it, from the server's live object; then the server does it. Two
things make that exact:

- What the engine gives is not defaulted. A dry-run PUT lets the server default it, and that is compared.
- Times are told apart by making the live ones old: every entry that the write gives a new time to stands out.
"""

from __future__ import annotations

import http.client
import itertools
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from konverge.testing import ControlPlane
from konverge_cluster.patches import (
    Endpoint,
    PatchError,
    Schemas,
    apply_json_patch,
    apply_merge_patch,
    apply_patch,
    apply_strategic_patch,
    keep_times,
    track_update,
)

Json = dict[str, Any]

AGED = "2020-01-01T00:00:00Z"
NOW = "2030-01-01T00:00:00Z"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
CONTENT_TYPES = {
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

# Files of tests share the server, and so the names of its objects.
_NUMBERS = itertools.count()


class Server:
    """The real API server over one kept connection."""

    def __init__(self, plane: ControlPlane) -> None:
        host = plane.url.removeprefix("https://")
        self._connection = http.client.HTTPSConnection(host, context=plane.credentials.admin_context())
        self._schemas: dict[str, Any] = {}

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        agent: str = "tester/1",
        **query: str,
    ) -> tuple[int, Any]:
        target = f"{path}?{urlencode(query)}" if query else path
        sent = None if method == "GET" else json.dumps(body)
        self._connection.request(method, target, sent, {"Content-Type": kind, "User-Agent": agent.encode()})
        response = self._connection.getresponse()
        text = response.read()
        # An unknown path is answered in plain text.
        return response.status, json.loads(text) if text[:1] == b"{" else text.decode()

    def schemas(self, *groups: str) -> Schemas:
        for group in groups:
            self._schemas |= self.request("GET", f"/openapi/v3/{group}")[1]["components"]["schemas"]
        return Schemas(self._schemas)

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, repr=False)
class ResourcePath:
    """A way to an object: the collection in one version, and the subresource."""

    collection: str
    endpoint: Endpoint

    def path(self, name: str) -> str:
        subresource = self.endpoint.subresource
        return f"{self.collection}/{name}/{subresource}" if subresource else f"{self.collection}/{name}"


@dataclass(repr=False)
class PatchedResource:
    """A resource that writes are tried on; the first door is where its objects are made."""

    server: Server
    doors: list[ResourcePath]
    base: Json

    def fresh(self) -> Json:
        """Give the base object with a name that no object has."""
        base: Json = json.loads(json.dumps(self.base))
        base["metadata"]["name"] = f"o{next(_NUMBERS)}"
        return base

    def live(self, name: str, door: ResourcePath) -> Json:
        """Read an object in the version of a door."""
        return dict(self.server.request("GET", f"{door.collection}/{name}")[1])


@dataclass
class Write:
    """One write: how (POST, PUT or a patch), by whom, and what."""

    how: str
    manager: str
    body: Any
    door: ResourcePath
    force: bool = False

    @property
    def query(self) -> dict[str, str]:
        forced = {"force": "true"} if self.how == "apply" and self.force else {}
        return {"fieldManager": self.manager, **forced}


def engine_patch(live: Json, write: Write) -> Json:
    """Do a patch other than apply with the engine."""
    if write.how == "json":
        patched: Json = apply_json_patch(live, write.body)
        return patched
    if write.how == "merge":
        return apply_merge_patch(live, write.body)
    return apply_strategic_patch(live, write.body, topology=write.door.endpoint.topology)


def defaulted(subject: PatchedResource, obj: Json, door: ResourcePath, *, exists: bool) -> tuple[int, Json]:
    """Ask the server what it would store, without storing it."""
    if "metadata" not in obj:
        return 400, {}
    sent = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
    method, path = ("PUT", door.path(obj["metadata"]["name"])) if exists else ("POST", door.collection)
    status, answer = subject.server.request(method, path, sent, dryRun="All")
    if status < 300:
        answer["metadata"].pop("managedFields", None)
    return status, answer


def with_managed(obj: Json, entries: list[Json]) -> Json:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def expectation(subject: PatchedResource, live: Json | None, write: Write) -> tuple[int, Json]:
    """Say what the server will answer: (code, object or Status); code 0 when it will refuse the new object."""
    endpoint = write.door.endpoint
    try:
        if write.how == "apply":
            applied = apply_patch(
                live, write.body, manager=write.manager, endpoint=endpoint, now=NOW, force=write.force
            )
            status, settled = defaulted(subject, applied.object, write.door, exists=live is not None)
            if leaves_null(applied.object, endpoint):
                return 0, applied.object
            managed = applied.managed_fields
        else:
            changed = write.body if live is None or write.how == "PUT" else engine_patch(live, write)
            status, settled = defaulted(subject, changed, write.door, exists=live is not None)
            if status < 300:
                new = before_reset(settled, changed, endpoint)
                managed = track_update(live, new, manager=write.manager, endpoint=endpoint, now=NOW)
    except PatchError as wrong:
        return wrong.code, {"message": wrong.message, "reason": wrong.reason, "details": wrong.details}
    if status >= 300:
        return 0, settled
    expected = with_managed(settled, managed)
    return 200, with_managed(expected, keep_times(live, expected)) if live is not None else expected


def before_reset(settled: Json, changed: Json, endpoint: Endpoint) -> Json:
    """Give the object at the moment when the server looks at owners: defaulted, nothing reset.

    What the request says of managedFields counts; the dry run was asked without.
    """
    said = {key: value for key, value in changed["metadata"].items() if key == "managedFields"}
    new = {**settled, "metadata": {**settled["metadata"], **said}}
    for key in ("metadata", "spec", "status"):
        if endpoint.kind == "Thing" and f"f:{key}" in endpoint.reset[endpoint.api_version]:
            new = {**{k: v for k, v in new.items() if k != key}, **{k: v for k, v in changed.items() if k == key}}
    return new


def leaves_null(obj: Json, endpoint: Endpoint) -> bool:
    """Tell whether an apply took all out of something whose field stays, which leaves null.

    The real server drops nulls that it decodes, not those that it makes: a custom resource is then invalid.
    """
    if endpoint.subresource == "status":
        return obj["kind"] == "Thing" and has_null(obj.get("status", {}))
    spec = obj.get("spec", {}) if obj["kind"] == "Thing" else {}
    if spec is None:
        return True
    open_inside = ("open", "embedded")
    return any(
        value is None if key in open_inside else has_null(value)
        for key, value in spec.items()
        if key not in ("empty", "free")
    )


def has_null(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(has_null, parts))


def masked(obj: Json) -> Json:
    """Hide what no two runs share, and make every new time the same."""
    metadata = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp", "generation")
    }
    entries = [
        {**entry, "time": entry["time"] if entry["time"] < "2021" else NOW} if "time" in entry else entry
        for entry in metadata.get("managedFields", [])
    ]
    shown = {**obj, "metadata": {**metadata, "managedFields": entries}}
    if isinstance(obj.get("spec"), dict) and obj["spec"].get("free", 0) is None:
        # A null that no schema forbids is shown once and not stored.
        shown["spec"] = {key: value for key, value in obj["spec"].items() if key != "free"}
    return shown


def perform(subject: PatchedResource, live: Json | None, write: Write) -> tuple[int, Json]:
    """Do the write on the server."""
    request = subject.server.request
    if live is None and write.how != "apply":
        return request("POST", write.door.collection, write.body, **write.query)
    path = write.door.path((live or write.body)["metadata"]["name"])
    if write.how == "PUT":
        return request("PUT", path, write.body, **write.query)
    return request("PATCH", path, write.body, kind=CONTENT_TYPES[write.how], **write.query)


def aged(subject: PatchedResource, obj: Json) -> Json:
    """Make every time of the live object old, so that new ones can be told.

    Times alone do not change on a server that sees no other change, so the entries go first and come back old.
    """
    entries, name = obj["metadata"].get("managedFields"), obj["metadata"]["name"]
    path = subject.doors[0].path(name)
    for wish in [[{}], [{**entry, "time": AGED} for entry in entries]] if entries else []:
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": wish}]
        status, obj = subject.server.request("PATCH", path, patch, kind=CONTENT_TYPES["json"])
        assert status == 200, obj
    return subject.live(name, subject.doors[0])


def in_any_order(details: Json | None) -> Json | None:
    """Sort the causes: the real server lists managers at random."""
    if not details or "causes" not in details:
        return details
    return {**details, "causes": sorted(details["causes"], key=lambda cause: sorted(cause.items()))}


def compared(subject: PatchedResource, live: Json | None, write: Write) -> Json | None:
    """Do one write on both, compare, and give the live object after it."""
    code, expected = expectation(subject, live, write)
    status, answer = perform(subject, live, write)
    told = json.dumps([write.door.path("o"), write.how, write.manager, write.force, write.body])
    if code == 0:
        # Decoding and validation are not the engine's: that both end with a refusal is all there is to compare.
        assert status >= 300, f"{told}\nexpected {expected}\ngot {answer}"
        return live
    if status >= 300:
        assert status == code, f"{told}\n{json.dumps(live)}\nexpected {expected}\ngot {answer}"
        assert answer["message"] == expected["message"], told
        assert answer.get("reason", "") == expected.get("reason", ""), told
        assert in_any_order(answer.get("details")) == in_any_order(expected.get("details")), told
        return live
    assert code == 200, f"{told}\nexpected {expected}\ngot {json.dumps(answer)}"
    got, wanted = (json.dumps(masked(obj), sort_keys=True) for obj in (answer, expected))
    assert got == wanted, f"\n{told}\nlive   {json.dumps(live, sort_keys=True)}\nserver {got}\nengine {wanted}"
    return aged(subject, answer)


def applied(subject: PatchedResource, name: str, said: Json, *, by: str = "m1", force: bool = False) -> Write:
    """Write a configuration of the first door's kind."""
    metadata = {**said.get("metadata", {}), "name": name}
    identity = {"apiVersion": subject.base["apiVersion"], "kind": subject.base["kind"]}
    return Write("apply", by, {**identity, **said, "metadata": metadata}, subject.doors[0], force=force)


def created(subject: PatchedResource, said: Json, *, by: str = "m1") -> Json:
    """Make an object with a POST."""
    live = compared(subject, None, Write("POST", by, apply_merge_patch(subject.fresh(), said), subject.doors[0]))
    assert live is not None
    return live


def entry(manager: str, fields: Json, **more: Any) -> Json:
    plain = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": AGED, "fieldsType": "FieldsV1"}
    return {**plain, "fieldsV1": fields, **more}


def ages(entries: list[Json] | None) -> list[Json]:
    """Make new times comparable, as `masked` does."""
    return list(masked({"metadata": {"managedFields": entries or []}})["metadata"]["managedFields"])
