"""Writes to a real API server, compared with the results of the patch engines.

Before each write the engine computes the result from the server's live object; then the server executes the write. Two
details make the results comparable:

- The engine's result is not defaulted. A dry-run PUT makes the server default it, and that is compared.
- The times of the live object are set to an old value, so that every entry with a new time can be recognized.
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
    """The real API server, over one persistent connection."""

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
        # The response for an unknown path is plain text.
        return response.status, json.loads(text) if text[:1] == b"{" else text.decode()

    def schemas(self, *groups: str) -> Schemas:
        for group in groups:
            self._schemas |= self.request("GET", f"/openapi/v3/{group}")[1]["components"]["schemas"]
        return Schemas(self._schemas)

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, repr=False)
class ResourcePath:
    """The path of objects: the collection in one version, and the subresource."""

    collection: str
    endpoint: Endpoint

    def path(self, name: str) -> str:
        subresource = self.endpoint.subresource
        return f"{self.collection}/{name}/{subresource}" if subresource else f"{self.collection}/{name}"


@dataclass(repr=False)
class PatchedResource:
    """A resource for patch tests; objects are created through the first of its paths."""

    server: Server
    resource_paths: list[ResourcePath]
    base: Json

    def fresh(self) -> Json:
        """Return the base object with a new name."""
        base: Json = json.loads(json.dumps(self.base))
        base["metadata"]["name"] = f"o{next(_NUMBERS)}"
        return base

    def live(self, name: str, resource_path: ResourcePath) -> Json:
        """Get an object in the version of a path."""
        return dict(self.server.request("GET", f"{resource_path.collection}/{name}")[1])


@dataclass
class Write:
    """One write: method (POST, PUT or a patch type), manager and body."""

    how: str
    manager: str
    body: Any
    resource_path: ResourcePath
    force: bool = False

    @property
    def query(self) -> dict[str, str]:
        forced = {"force": "true"} if self.how == "apply" and self.force else {}
        return {"fieldManager": self.manager, **forced}


def engine_patch(live: Json, write: Write) -> Json:
    """Execute a patch other than apply with the engine."""
    if write.how == "json":
        patched: Json = apply_json_patch(live, write.body)
        return patched
    if write.how == "merge":
        return apply_merge_patch(live, write.body)
    return apply_strategic_patch(live, write.body, topology=write.resource_path.endpoint.topology)


def defaulted(resource: PatchedResource, obj: Json, resource_path: ResourcePath, *, exists: bool) -> tuple[int, Json]:
    """Return what the server would store, by a dry run."""
    if "metadata" not in obj:
        return 400, {}
    sent = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
    method, path = (
        ("PUT", resource_path.path(obj["metadata"]["name"])) if exists else ("POST", resource_path.collection)
    )
    status, answer = resource.server.request(method, path, sent, dryRun="All")
    if status < 300:
        answer["metadata"].pop("managedFields", None)
    return status, answer


def with_managed(obj: Json, entries: list[Json]) -> Json:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def expectation(resource: PatchedResource, live: Json | None, write: Write) -> tuple[int, Json]:
    """Return the expected response: (code, object or Status); code 0 when the new object is invalid."""
    endpoint = write.resource_path.endpoint
    try:
        if write.how == "apply":
            applied = apply_patch(
                live, write.body, manager=write.manager, endpoint=endpoint, now=NOW, force=write.force
            )
            status, stored = defaulted(resource, applied.object, write.resource_path, exists=live is not None)
            if leaves_null(applied.object, endpoint):
                return 0, applied.object
            managed = applied.managed_fields
        else:
            changed = write.body if live is None or write.how == "PUT" else engine_patch(live, write)
            status, stored = defaulted(resource, changed, write.resource_path, exists=live is not None)
            if status < 300:
                new = before_reset(stored, changed, endpoint)
                managed = track_update(live, new, manager=write.manager, endpoint=endpoint, now=NOW)
    except PatchError as wrong:
        return wrong.code, {"message": wrong.message, "reason": wrong.reason, "details": wrong.details}
    if status >= 300:
        return 0, stored
    expected = with_managed(stored, managed)
    return 200, with_managed(expected, keep_times(live, expected)) if live is not None else expected


def before_reset(stored: Json, changed: Json, endpoint: Endpoint) -> Json:
    """Return the object for which the server computes owners: defaulted, nothing reset.

    It has the managedFields of the request, which the dry run did not have.
    """
    desired = {key: value for key, value in changed["metadata"].items() if key == "managedFields"}
    new = {**stored, "metadata": {**stored["metadata"], **desired}}
    for key in ("metadata", "spec", "status"):
        if endpoint.kind == "Thing" and f"f:{key}" in endpoint.reset[endpoint.api_version]:
            new = {**{k: v for k, v in new.items() if k != key}, **{k: v for k, v in changed.items() if k == key}}
    return new


def leaves_null(obj: Json, endpoint: Endpoint) -> bool:
    """Report whether an apply removed all parts of a value whose field remains, which leaves null.

    The real server drops nulls that it decodes, but not those that it creates: a custom resource is then invalid.
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
    """Remove values that differ between runs, and make all new times equal."""
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


def perform(resource: PatchedResource, live: Json | None, write: Write) -> tuple[int, Json]:
    """Execute the write on the server."""
    request = resource.server.request
    if live is None and write.how != "apply":
        return request("POST", write.resource_path.collection, write.body, **write.query)
    path = write.resource_path.path((live or write.body)["metadata"]["name"])
    if write.how == "PUT":
        return request("PUT", path, write.body, **write.query)
    return request("PATCH", path, write.body, kind=CONTENT_TYPES[write.how], **write.query)


def aged(resource: PatchedResource, obj: Json) -> Json:
    """Set every time of the live object to an old value, so that new times can be recognized.

    The server does not store a change of times alone, so the entries are removed first and then added with old times.
    """
    entries, name = obj["metadata"].get("managedFields"), obj["metadata"]["name"]
    path = resource.resource_paths[0].path(name)
    for new_entries in [[{}], [{**entry, "time": AGED} for entry in entries]] if entries else []:
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": new_entries}]
        status, obj = resource.server.request("PATCH", path, patch, kind=CONTENT_TYPES["json"])
        assert status == 200, obj
    return resource.live(name, resource.resource_paths[0])


def in_any_order(details: Json | None) -> Json | None:
    """Sort the causes: the real server lists managers in random order."""
    if not details or "causes" not in details:
        return details
    return {**details, "causes": sorted(details["causes"], key=lambda cause: sorted(cause.items()))}


def compared(resource: PatchedResource, live: Json | None, write: Write) -> Json | None:
    """Execute one write with the engine and on the server, compare, and return the live object."""
    code, expected = expectation(resource, live, write)
    status, answer = perform(resource, live, write)
    told = json.dumps([write.resource_path.path("o"), write.how, write.manager, write.force, write.body])
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
    return aged(resource, answer)


def applied(resource: PatchedResource, name: str, desired: Json, *, by: str = "m1", force: bool = False) -> Write:
    """Return an apply of a configuration through the first path."""
    metadata = {**desired.get("metadata", {}), "name": name}
    identity = {"apiVersion": resource.base["apiVersion"], "kind": resource.base["kind"]}
    return Write("apply", by, {**identity, **desired, "metadata": metadata}, resource.resource_paths[0], force=force)


def created(resource: PatchedResource, desired: Json, *, by: str = "m1") -> Json:
    """Create an object with a POST."""
    live = compared(
        resource, None, Write("POST", by, apply_merge_patch(resource.fresh(), desired), resource.resource_paths[0])
    )
    assert live is not None
    return live


def entry(manager: str, fields: Json, **more: Any) -> Json:
    plain = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": AGED, "fieldsType": "FieldsV1"}
    return {**plain, "fieldsV1": fields, **more}


def ages(entries: list[Json] | None) -> list[Json]:
    """Make new times comparable, as `masked` does."""
    return list(masked({"metadata": {"managedFields": entries or []}})["metadata"]["managedFields"])
