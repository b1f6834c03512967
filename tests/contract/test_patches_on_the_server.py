"""The patch engines against a real API server: the same writes, the same objects, the same owners.

Each example is a sequence of writes by several managers, drawn by hypothesis, always the same ones. Before each write
the engine says what will come of it, from the server's live object; then the server does it. Two things make that
exact:

- What the engine gives is not defaulted. A dry-run PUT lets the server default it, and that is compared.
- Times are told apart by making the live ones old: every entry that the write gives a new time to stands out.

Known differences, none of which a generator here draws:

- A JSON patch `test` on a string with `<`, `>` or `&` fails on the real server, which compares the escaped bytes of its
  own encoding with the bytes of the patch.
- A strategic merge patch that deletes and adds the same item of a list of scalars: the real server does one or the
  other last, at random. The engine adds last.
- Where a configuration has several fields that the schema does not know, the real server names one of each map, picked
  at random; so does the engine, but always the first.
"""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from konverge.controlplane.patches import (
    Endpoint,
    PatchError,
    Schemas,
    apply_json_patch,
    apply_merge_patch,
    apply_patch,
    apply_strategic_patch,
    custom_resource_topology,
    entries_of_object,
    entries_of_scale,
    keep_times,
    make_set,
    manager_name,
    track_update,
)
from konverge.testing import ControlPlane

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

BOUNDED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Server:
    """The real API server over one kept connection."""

    def __init__(self, plane: ControlPlane) -> None:
        host = plane.url.removeprefix("https://")
        self._connection = http.client.HTTPSConnection(host, context=plane.credentials.admin_context())
        self._schemas: dict[str, Any] = {}

    def ask(
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
            self._schemas |= self.ask("GET", f"/openapi/v3/{group}")[1]["components"]["schemas"]
        return Schemas(self._schemas)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Iterator[Server]:
    made = Server(control_plane)
    yield made
    made.close()


@dataclass(frozen=True, repr=False)
class Door:
    """A way to an object: the collection in one version, and the subresource."""

    collection: str
    endpoint: Endpoint

    def path(self, name: str) -> str:
        subresource = self.endpoint.subresource
        return f"{self.collection}/{name}/{subresource}" if subresource else f"{self.collection}/{name}"


@dataclass(repr=False)
class Subject:
    """A resource that writes are tried on; the first door is where its objects are made."""

    server: Server
    doors: list[Door]
    base: Json
    names: Iterator[int] = field(default_factory=lambda: itertools.count())

    def fresh(self) -> Json:
        """Give the base object with a name that no object has."""
        base: Json = json.loads(json.dumps(self.base))
        base["metadata"]["name"] = f"o{next(self.names)}"
        return base

    def live(self, name: str, door: Door) -> Json:
        """Read an object in the version of a door."""
        return dict(self.server.ask("GET", f"{door.collection}/{name}")[1])


@dataclass
class Write:
    """One write: how (POST, PUT or a patch), by whom, and what."""

    how: str
    manager: str
    body: Any
    door: Door
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


def defaulted(subject: Subject, obj: Json, door: Door, *, exists: bool) -> tuple[int, Json]:
    """Ask the server what it would store, without storing it."""
    if "metadata" not in obj:
        return 400, {}
    sent = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
    method, path = ("PUT", door.path(obj["metadata"]["name"])) if exists else ("POST", door.collection)
    status, answer = subject.server.ask(method, path, sent, dryRun="All")
    if status < 300:
        answer["metadata"].pop("managedFields", None)
    return status, answer


def with_managed(obj: Json, entries: list[Json]) -> Json:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def expectation(subject: Subject, live: Json | None, write: Write) -> tuple[int, Json]:
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


def perform(subject: Subject, live: Json | None, write: Write) -> tuple[int, Json]:
    """Do the write on the server."""
    ask = subject.server.ask
    if live is None and write.how != "apply":
        return ask("POST", write.door.collection, write.body, **write.query)
    path = write.door.path((live or write.body)["metadata"]["name"])
    if write.how == "PUT":
        return ask("PUT", path, write.body, **write.query)
    return ask("PATCH", path, write.body, kind=CONTENT_TYPES[write.how], **write.query)


def aged(subject: Subject, obj: Json) -> Json:
    """Make every time of the live object old, so that new ones can be told.

    Times alone do not change on a server that sees no other change, so the entries go first and come back old.
    """
    entries, name = obj["metadata"].get("managedFields"), obj["metadata"]["name"]
    path = subject.doors[0].path(name)
    for wish in [[{}], [{**entry, "time": AGED} for entry in entries]] if entries else []:
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": wish}]
        status, obj = subject.server.ask("PATCH", path, patch, kind=CONTENT_TYPES["json"])
        assert status == 200, obj
    return subject.live(name, subject.doors[0])


def in_any_order(details: Json | None) -> Json | None:
    """Sort the causes: the real server lists managers at random."""
    if not details or "causes" not in details:
        return details
    return {**details, "causes": sorted(details["causes"], key=lambda cause: sorted(cause.items()))}


def compared(subject: Subject, live: Json | None, write: Write) -> Json | None:
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


def run(subject: Subject, rng: Random, shape: Shape) -> None:
    """Create an object and do a handful of writes one after the other."""
    made = apply_merge_patch(subject.fresh(), shape(Draw(rng)))
    write = Write(rng.choice(["apply", "POST"]), manager(rng), made, subject.doors[0])
    live = compared(subject, None, write)
    for _ in range(rng.randint(2, 7)):
        if live is None:
            return
        door = rng.choice(subject.doors)
        live = subject.live(live["metadata"]["name"], door)
        live = compared(subject, live, any_write(rng, live, shape, door))


def any_write(rng: Random, live: Json, shape: Shape, door: Door) -> Write:
    """Draw a write to a live object."""
    hows = ["apply"] * 4 + ["merge", "json", "PUT"] + ["strategic"] * 2 * door.endpoint.topology.structured
    how = rng.choice(hows)
    draw = Draw(rng, nulls=how in ("merge", "strategic"), directives=how == "strategic")
    body: Any = shape(draw)
    if how == "apply":
        identity = {"apiVersion": live["apiVersion"], "kind": live["kind"]}
        named = {**body.get("metadata", {}), "name": live["metadata"]["name"]}
        body = {**identity, **body, "metadata": named}
    elif how == "PUT":
        body = apply_merge_patch(live, body)
    elif how == "json":
        roots = ("/metadata/", "/status") if door.endpoint.subresource else ("/metadata/", "/spec", "/data")
        body = [json_operation(rng, live, roots) for _ in range(rng.randint(1, 3))]
    return Write(how, manager(rng), body, door, force=rng.random() < 0.4)


def manager(rng: Random) -> str:
    return rng.choice(["m1", "m2", "m3"])


# --- what is drawn ----------------------------------------------------------------------------------------------------


class Draw:
    """Draws parts of objects: keys are there or not, values come from small sets, so that writes meet."""

    def __init__(self, rng: Random, *, nulls: bool = False, directives: bool = False) -> None:
        self.rng = rng
        self.directives = directives
        self._nulls = nulls

    def one(self, *values: Any) -> Any:
        return self.rng.choice(values)

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def some(self, **parts: Callable[[], Any]) -> Json:
        """Draw an object that has each key or not."""
        made = {name.replace("__", "/"): make() for name, make in parts.items() if self.chance(0.55)}
        return {name: None if self._nulls and self.chance(0.08) else value for name, value in made.items()}

    def map_of(self, keys: str, *values: Any) -> Json:
        return self.some(**{key: lambda: self.one(*values) for key in keys.split()})

    def list_of(self, *values: Any) -> list[Any]:
        return self.rng.sample(values, self.rng.randint(0, len(values)))

    def keyed(self, key: str, values: list[Any], item: Callable[[], Json]) -> list[Json]:
        """Draw items of a list that is a map by one key, sometimes with directives."""
        made = [{key: value, **item()} for value in self.list_of(*values)]
        if self.directives:
            made = [
                {**one, "$patch": self.one("delete", "delete", "replace")} if self.chance(0.1) else one for one in made
            ]
            made += [{key: self.one(*values), "$patch": "delete"}] if self.chance(0.15) else []
            made += [{"$patch": "replace"}] if self.chance(0.05) else []
            made += [item()] if self.chance(0.02) else []
        return made

    def ordered(self, field_name: str, key: str, made: Json) -> Json:
        """Sometimes add the order that items shall stand in."""
        items = made.get(field_name)
        if not self.directives or not isinstance(items, list) or not self.chance(0.3):
            return made
        known = [item[key] for item in items if key in item and "$patch" not in item]
        order = [{key: value} for value in dict.fromkeys([*known, *self.rng.sample(["a", "b", "c", "A", "B"], 2)])]
        if self.chance(0.1):
            self.rng.shuffle(order)
        return {**made, f"$setElementOrder/{field_name}": order}


Shape = Callable[[Draw], Json]


def metadata(draw: Draw) -> Json:
    made = draw.some(
        labels=lambda: draw.map_of("a b c", "1", "2"),
        annotations=lambda: draw.map_of("a b c", "1", "2"),
        finalizers=lambda: draw.list_of("ex.io/a", "ex.io/b", "ex.io/c"),
    )
    if draw.directives and draw.chance(0.2):
        said = made.get("finalizers") or []
        made["$deleteFromPrimitiveList/finalizers"] = [f for f in ("ex.io/a", "ex.io/b") if f not in said]
    if draw.directives and draw.chance(0.1):
        made["$setElementOrder/finalizers"] = draw.list_of("ex.io/a", "ex.io/b", "ex.io/c")
    return made


def container(draw: Draw) -> Json:
    made = draw.some(
        image=lambda: draw.one("i1", "i2"),
        args=lambda: draw.list_of("p", "q"),
        env=lambda: draw.keyed("name", ["A", "B", "C"], lambda: draw.some(value=lambda: draw.one("1", "2", ""))),
        ports=lambda: draw.list_of(*(ports if draw.chance(0.5) else ports[:2])),
        resources=lambda: draw.some(limits=lambda: draw.map_of("cpu memory", "1", "1000m", 2)),
        volumeMounts=lambda: draw.keyed("mountPath", ["/a", "/b"], lambda: {"name": "v"}),
        stdin=lambda: draw.one(True, False),
    )
    return draw.ordered("env", "name", made)


ports = [
    {"containerPort": 80},
    {"containerPort": 80, "protocol": "UDP"},
    {"containerPort": 443, "protocol": "TCP", "hostIP": "10.0.0.1"},
    {"containerPort": 443, "protocol": "UDP", "name": "u"},
]


def pod_spec(draw: Draw) -> Json:
    made = draw.some(
        containers=lambda: draw.keyed("name", ["a", "b", "c"], lambda: container(draw)),
        nodeSelector=lambda: draw.map_of("a b", "1", "2"),
        volumes=lambda: draw.keyed("name", ["v", "w"], lambda: draw.some(emptyDir=dict)),
        tolerations=lambda: draw.list_of({"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}),
        hostAliases=lambda: draw.keyed("ip", ["10.0.0.1", "10.0.0.2"], lambda: draw.some(hostnames=lambda: ["h"])),
        terminationGracePeriodSeconds=lambda: draw.one(5, 30),
        securityContext=lambda: draw.some(runAsUser=lambda: draw.one(1, 2), supplementalGroups=lambda: [1]),
        topologySpreadConstraints=lambda: [
            {
                "maxSkew": draw.one(1, 2),
                "topologyKey": "k",
                "whenUnsatisfiable": draw.one("DoNotSchedule", "ScheduleAnyway"),
            }
        ],
    )
    return draw.ordered("containers", "name", made)


def deployment(draw: Draw) -> Json:
    strategy = [{"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": draw.one(1, "10%")}}]
    if draw.directives:
        strategy = [{"type": "Recreate", "$retainKeys": ["type"]}, {"rollingUpdate": None, "type": "Recreate"}]
    spec = draw.some(
        replicas=lambda: draw.one(0, 1, 2),
        paused=lambda: draw.one(True, False),
        minReadySeconds=lambda: draw.one(0, 3),
        strategy=lambda: draw.one(*strategy),
    )
    if draw.chance(0.8):
        inner = draw.some(metadata=lambda: draw.some(annotations=lambda: draw.map_of("a b", "1", "2")))
        spec["template"] = {**inner, "spec": pod_spec(draw)}
    status = {"status": draw.some(replicas=lambda: draw.one(1, 2), conditions=lambda: conditions(draw))}
    return {"metadata": metadata(draw), "spec": spec, **(status if draw.chance(0.4) else {})}


def conditions(draw: Draw) -> list[Json]:
    return draw.keyed(
        "type", ["A", "B"], lambda: {"status": draw.one("True", "False"), **draw.some(reason=lambda: "R")}
    )


def config_map(draw: Draw) -> Json:
    made = draw.some(data=lambda: draw.map_of("a b c", "1", "2"), binaryData=lambda: draw.map_of("d e", "AA==", "AQ=="))
    return {"metadata": metadata(draw), **made}


def service(draw: Draw) -> Json:
    def named() -> Json:
        return {"name": draw.one("p", "q", "r"), **draw.some(targetPort=lambda: draw.one(8080, "http"))}

    listed = [{"port": 80}, {"port": 80, "protocol": "UDP"}, {"port": 443, "protocol": "TCP"}]
    return {
        "metadata": metadata(draw),
        "spec": draw.some(
            selector=lambda: draw.map_of("a b", "1", "2"),
            ports=lambda: [{**named(), **port} for port in draw.list_of(*listed)],
            sessionAffinity=lambda: draw.one("ClientIP", "None"),
        ),
    }


def thing(draw: Draw) -> Json:
    def inner() -> Json:
        return draw.some(
            value=lambda: draw.one("1", "2"),
            marks=lambda: draw.map_of("a b", 1, 2),
            parts=lambda: draw.keyed("id", [1, 2, 10], lambda: draw.some(size=lambda: draw.one(1, 2))),
            words=lambda: draw.list_of("x", "y"),
        )

    def free() -> Any:
        return draw.one(1, "x", [1, {"a": 1}], {"a": {"b": draw.one(1, 2)}}, {"a": [1]}, {}, [], True, 1.5)

    spec = draw.some(
        replicas=lambda: draw.one(0, 1, 2),
        name=lambda: draw.one("x", "y", ""),
        amount=lambda: draw.one(1, "1", "50%"),
        ratio=lambda: draw.one(1, 1.5, 2.0),
        empty=lambda: draw.one(None, "x"),
        open=lambda: draw.one({"a": free(), "b": free()}, {"b": free()}, {}),
        free=free,
        tags=lambda: draw.list_of("x", "y", "z&<>"),
        numbers=lambda: draw.list_of(1, 2, 10),
        atoms=lambda: draw.list_of("x", "y"),
        records=lambda: draw.list_of({"a": 1}, {"a": 2}),
        items=lambda: draw.keyed("name", ["a", "b", "c"], inner),
        ports=lambda: draw.list_of(
            {"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 2, "protocol": "TCP", "note": "n"}
        ),
        labels=lambda: draw.map_of("a b c", "1", "2"),
        whole=lambda: draw.map_of("a b", "1", "2"),
        pair=lambda: draw.map_of("a b", 1, 2),
        struct=lambda: draw.some(
            a=lambda: draw.one(1, 2), b=lambda: draw.one("x", "y"), c=lambda: draw.map_of("a", "1")
        ),
        structs=lambda: draw.some(k=lambda: draw.map_of("x y", 1, 2), l=lambda: draw.map_of("x y", 1, 2)),
        embedded=lambda: {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", **draw.some(labels=lambda: draw.map_of("a b", "1", "2"))},
            **draw.some(spec=lambda: draw.map_of("a b", 1, 2)),
        },
    )
    made = {"metadata": metadata(draw), **draw.some(spec=lambda: spec)}
    return {**made, **({"status": draw.some(phase=lambda: draw.one("A", "B"))} if draw.chance(0.4) else {})}


def json_operation(rng: Random, live: Json, roots: tuple[str, ...]) -> Json:
    """Draw an operation that fits the live object, nearly."""
    pointers = [pointer for pointer in all_pointers(live) if pointer.startswith(roots)]
    # What the server puts back after it looked at owners is left alone.
    left = (
        "/metadata/managedFields",
        "/metadata/name",
        "/metadata/uid",
        "/metadata/resource",
        "/spec/clusterIP",
        "/spec/ip",
    )
    known = [pointer for pointer in pointers if not pointer.startswith(left) and pointer != "/spec"]
    place = rng.choice([*known, "/metadata/labels/a", "/spec/replicas", "/data/a", "/metadata/finalizers/-"])
    other = rng.choice(known)
    # Decoding makes "" of a null finalizer, and that is not the engine's.
    value = "x" if "finalizers" in place else rng.choice(["1", "x", 1, None, True, ["ex.io/a"], {"a": "1"}])
    return rng.choice(
        [
            {"op": "add", "path": place, "value": value},
            {"op": "replace", "path": place, "value": value},
            {"op": "remove", "path": place},
            {"op": "test", "path": place, "value": value},
            {"op": "test", "path": place, "value": read(live, place)},
            {"op": "move", "from": place, "path": other},
            {"op": "copy", "from": place, "path": other},
            {"op": "add", "path": place.removesuffix("/0") + "/-1", "value": value},
            {"op": "add", "path": "/metadata/labels", "value": {"a": rng.choice("12")}},
            {"op": "add", "path": "/metadata/annotations", "value": {"b": rng.choice("12")}},
            {"op": "nonsense", "path": place},
        ]
    )


def all_pointers(value: Any, prefix: str = "") -> Iterator[str]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        pointer = f"{prefix}/{str(key).replace('~', '~0').replace('/', '~1')}"
        yield pointer
        yield from all_pointers(inner, pointer)


def read(value: Any, pointer: str) -> Any:
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        try:
            value = value[key] if isinstance(value, dict) else value[int(key)]
        except (KeyError, ValueError, IndexError, TypeError):
            return None
    return value


# --- the resources ----------------------------------------------------------------------------------------------------

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "a", "image": "i0"}], "volumes": [{"name": "v", "emptyDir": {}}]},
        },
    },
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
# All that the server would allocate is said: it does so after it looked at owners.
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {},
    "spec": {
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "z", "port": 1}],
    },
}
GROUP = "patches.konverge.dev"
THING = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {}}
INTEGER, STRING = {"type": "integer"}, {"type": "string"}


def listed(kind: str, items: Json, *keys: str) -> Json:
    made = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    return {**made, "x-kubernetes-list-map-keys": list(keys)} if keys else made


def struct(properties: Json, *required: str, **more: Any) -> Json:
    made = {"type": "object", "properties": properties, **more}
    return {**made, "required": list(required)} if required else made


OPEN = {"x-kubernetes-preserve-unknown-fields": True}
SPEC = struct(
    {
        "replicas": INTEGER,
        "name": STRING,
        "amount": {"x-kubernetes-int-or-string": True},
        "ratio": {"type": "number"},
        "empty": {"type": "string", "nullable": True},
        "open": {"type": "object", **OPEN},
        "free": OPEN,
        "tags": listed("set", STRING),
        "numbers": listed("set", INTEGER),
        "atoms": listed("atomic", STRING),
        "records": {"type": "array", "items": struct({"a": INTEGER})},
        "items": listed(
            "map",
            struct(
                {
                    "name": STRING,
                    "value": STRING,
                    "marks": {"type": "object", "additionalProperties": INTEGER},
                    "parts": listed("map", struct({"id": INTEGER, "size": INTEGER}, "id"), "id"),
                    "words": listed("set", STRING),
                },
                "name",
            ),
            "name",
        ),
        "ports": listed(
            "map",
            struct({"port": INTEGER, "protocol": {**STRING, "default": "TCP"}, "note": STRING}, "port"),
            "port",
            "protocol",
        ),
        "labels": {"type": "object", "additionalProperties": STRING},
        "whole": {"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
        "pair": struct({"a": INTEGER, "b": INTEGER}, **{"x-kubernetes-map-type": "atomic"}),
        "struct": struct({"a": INTEGER, "b": STRING, "c": {"type": "object", "additionalProperties": STRING}}),
        "structs": {"type": "object", "additionalProperties": struct({"x": INTEGER, "y": INTEGER})},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, **OPEN},
    }
)
SCHEMA = struct({"spec": SPEC, "status": struct({"phase": STRING, "replicas": INTEGER})})
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"things.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v1",
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }
            for version in ("v1", "v2")
        ],
    },
}


def built_in(server: Server, group: str, schema: str, plural: str, base: Json) -> Subject:
    version = base["apiVersion"]
    versions = {version: server.schemas(group).topology(schema)}
    endpoint = Endpoint(version, base["kind"], versions, reset={version: make_set("status")})
    return Subject(server, [Door(f"/{group}/namespaces/default/{plural}", endpoint)], base)


@pytest.fixture(scope="module")
def deployments(server: Server) -> Subject:
    subject = built_in(server, "apis/apps/v1", "io.k8s.api.apps.v1.Deployment", "deployments", DEPLOYMENT)
    [main] = subject.doors
    reset = {"apps/v1": make_set("spec", "metadata.labels")}
    status = replace(main, endpoint=replace(main.endpoint, subresource="status", reset=reset))
    return replace(subject, doors=[main, main, main, status])


@pytest.fixture(scope="module")
def config_maps(server: Server) -> Subject:
    return built_in(server, "api/v1", "io.k8s.api.core.v1.ConfigMap", "configmaps", CONFIG_MAP)


@pytest.fixture(scope="module")
def services(server: Server) -> Subject:
    return built_in(server, "api/v1", "io.k8s.api.core.v1.Service", "services", SERVICE)


@pytest.fixture(scope="module")
def things(server: Server) -> Subject:
    status, answer = server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    assert status == 201, answer
    topology = custom_resource_topology(SCHEMA, server.schemas("api/v1"))
    versions = {f"{GROUP}/{name}": topology for name in ("v1", "v2")}
    doors = []
    for version in versions:
        main = Endpoint(version, "Thing", versions, reset={version: make_set("status")})
        reset = dict.fromkeys(versions, make_set("metadata", "spec"))
        collection = f"/apis/{version}/namespaces/default/things"
        doors += [Door(collection, main), Door(collection, replace(main, subresource="status", reset=reset))]
        while server.ask("GET", collection)[0] != 200:
            pass
    return Subject(server, doors, THING)


randoms = given(rng=st.randoms(use_true_random=True))


@BOUNDED
@randoms
def test_deployments_come_out_alike(deployments: Subject, rng: Random) -> None:
    run(deployments, rng, deployment)


@BOUNDED
@randoms
def test_config_maps_come_out_alike(config_maps: Subject, rng: Random) -> None:
    run(config_maps, rng, config_map)


@BOUNDED
@randoms
def test_services_come_out_alike(services: Subject, rng: Random) -> None:
    run(services, rng, service)


@BOUNDED
@randoms
def test_custom_resources_come_out_alike(things: Subject, rng: Random) -> None:
    run(things, rng, thing)


# --- one by one -------------------------------------------------------------------------------------------------------


def applied(subject: Subject, name: str, said: Json, *, by: str = "m1", force: bool = False) -> Write:
    """Write a configuration of the first door's kind."""
    metadata = {**said.get("metadata", {}), "name": name}
    identity = {"apiVersion": subject.base["apiVersion"], "kind": subject.base["kind"]}
    return Write("apply", by, {**identity, **said, "metadata": metadata}, subject.doors[0], force=force)


def created(subject: Subject, said: Json, *, by: str = "m1") -> Json:
    """Make an object with a POST."""
    live = compared(subject, None, Write("POST", by, apply_merge_patch(subject.fresh(), said), subject.doors[0]))
    assert live is not None
    return live


def entry(manager: str, fields: Json, **more: Any) -> Json:
    plain = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": AGED, "fieldsType": "FieldsV1"}
    return {**plain, "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{}],
        [{"manager": ""}],
        [entry("other", {"f:data": {"f:a": {}}})],
        [entry("other", {"f:data": {"f:a": {}, "x:new": {}, "f:b": {".": {}}}, ".": {}})],
        [entry("other", {"f:data": {"f:a": {}}}, time="2019-12-31T23:00:00-01:00", operation="Apply")],
        [entry("other", {"f:data": {"f:a": {}}}), entry("other", {"f:data": {"f:b": {}}})],
        [entry("b", {"f:data": {"f:a": {}}}), entry("a", {"f:data": {"f:b": {}}}, subresource="status")],
        [entry("old", {"f:data": {"f:a": {}}}, apiVersion="v0"), entry("new", {"f:data": {"f:b": {}}})],
        [entry("bad", {"f:data": {}}, operation="Delete")],
        [entry("bad", {"f:data": {}}, fieldsType="FieldsV0")],
        [entry("bad", {"fdata": {}})],
        [entry("bad", {}, apiVersion="")],
        [entry("none", {})],
        None,
    ],
)
@pytest.mark.parametrize("changed", [True, False])
def test_clients_edit_managed_fields(config_maps: Subject, entries: Any, changed: bool) -> None:
    live: Json | None = created(config_maps, {"data": {"a": "1", "b": "1"}})
    assert live is not None
    data = {"a": "2", "b": "1"} if changed else live["data"]
    sent = {**live, "metadata": {**live["metadata"], "managedFields": entries}, "data": data}
    live = compared(config_maps, live, Write("PUT", "m2", sent, config_maps.doors[0]))
    assert live is not None
    name = live["metadata"]["name"]
    live = compared(config_maps, live, Write("merge", "m3", {"data": {"b": "3"}}, config_maps.doors[0]))
    live = compared(config_maps, live, applied(config_maps, name, {"data": {"a": "4"}}))
    compared(config_maps, live, applied(config_maps, name, {"data": {"a": "4"}}, force=True))


def test_a_new_object_may_bring_managed_fields(config_maps: Subject) -> None:
    entries = [entry("other", {"f:data": {"f:a": {}, "f:c": {}}})]
    created(config_maps, {"metadata": {"managedFields": entries}, "data": {"a": "1", "b": "1"}})


def test_the_oldest_of_too_many_updaters_are_folded(config_maps: Subject) -> None:
    live: Json | None = created(config_maps, {"data": {"start": "1"}}, by="first")
    for number in range(14):
        patch = {"data": {f"k{number}": "1"}}
        live = compared(config_maps, live, Write("merge", f"u{number:02}", patch, config_maps.doors[0]))
    assert live is not None
    names = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert "ancient-changes" in names
    assert len(names) == 10


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def client_side(data: Json, **more: Any) -> Json:
    """Give what kubectl's client-side apply would have written."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": {}}, "data": data, **more}
    return {"metadata": {"annotations": {LAST_APPLIED: json.dumps(config)}}, "data": data}


@pytest.mark.parametrize("by", ["kubectl", "m1"])
@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("drift", [{}, {"data": {"a": "9"}}, {"metadata": {"annotations": {LAST_APPLIED: "nonsense"}}}])
def test_kubectl_takes_over_from_client_side_apply(config_maps: Subject, by: str, force: bool, drift: Json) -> None:
    live: Json | None = created(config_maps, client_side({"a": "1", "b": "<&>"}), by="kubectl-client-side-apply")
    assert live is not None
    live = compared(config_maps, live, Write("merge", "other", drift, config_maps.doors[0]))
    name = live["metadata"]["name"] if live else ""
    said = {"metadata": {"annotations": {"x": "1"}}, "data": {"a": "2", "b": "<&>"}}
    live = compared(config_maps, live, applied(config_maps, name, said, by=by, force=force))
    compared(config_maps, live, applied(config_maps, name, {"data": {"a": "3"}}, by=by, force=force))


def test_kubectl_is_refused_what_client_side_apply_did_not_write(config_maps: Subject) -> None:
    live: Json | None = created(config_maps, client_side({"a": "1"}), by="kubectl-client-side-apply")
    live = compared(config_maps, live, Write("merge", "other", {"data": {"b": "1"}}, config_maps.doors[0]))
    name = live["metadata"]["name"] if live else ""
    compared(config_maps, live, applied(config_maps, name, {"data": {"a": "2", "b": "2"}}, by="kubectl"))


def template(**spec: Any) -> Json:
    return {"spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    "said",
    [
        {"spec": {"bogus": 1}},
        {"bogus": {"a": 1}},
        {"metadata": {"bogus": 1}},
        {"spec": {"replicas": "3"}},
        {"spec": {"replicas": True}},
        {"spec": {"paused": "yes"}},
        {"spec": []},
        {"spec": "x"},
        {"spec": {"template": [1, "a", None]}},
        {"spec": {"strategy": {"type": 1}}},
        {"spec": {"strategy": {"type": {"a": ["b", 1.5, False]}}}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": {"a": 1}}}}},
        {"metadata": {"labels": {"a": 1}}},
        {"metadata": {"labels": "a"}},
        {"metadata": {"finalizers": ["a", "a"]}},
        {"metadata": {"finalizers": [{"a": 1}]}},
        {"metadata": {"finalizers": [None]}},
        {"metadata": {"finalizers": [["a"]]}},
        {"metadata": {"finalizers": {"a": 1}}},
        {"metadata": {"ownerReferences": [{"name": "a"}]}},
        {"metadata": {"creationTimestamp": None}},
        template(containers={"name": "a"}),
        template(containers=[{"name": "a"}, {"name": "a", "image": "b"}]),
        template(containers=[{"name": "a", "env": [{"name": "A"}, {"name": "A"}]}]),
        template(containers=[{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]}]),
        template(containers=[{"name": "a", "ports": [{}]}]),
        template(containers=[{"name": "a", "ports": [None]}]),
        template(containers=[{"name": "a", "ports": ["x"]}]),
        template(containers=[{"name": "a", "args": [1]}]),
        template(containers=[{"name": "a", "resources": {"limits": {"cpu": [1]}}}]),
        template(containers=[{"name": "a", "volumeMounts": [{"name": "v"}]}]),
        template(containers=[{"image": "b"}]),
        template(topologySpreadConstraints=[{"maxSkew": 1}]),
        template(hostAliases=[{"hostnames": ["a"]}]),
        {"metadata": {"managedFields": []}},
        {"metadata": {"managedFields": [entry("a", {})]}},
        {"metadata": {"managedFields": None}},
        {"kind": "Bogus"},
        {"kind": ""},
        {"apiVersion": "apps/v9"},
        {"apiVersion": ""},
        {"apiVersion": "v1"},
        {"apiVersion": "", "kind": ""},
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_in_the_same_words(deployments: Subject, said: Json) -> None:
    base = deployments.fresh()
    write = applied(deployments, base["metadata"]["name"], said)
    compared(deployments, None, write)
    live = compared(deployments, None, Write("POST", "m2", base, deployments.doors[0]))
    compared(deployments, live, write)


@pytest.mark.parametrize(
    "said",
    [
        {"spec": {"bogus": 1}},
        {"spec": {"items": [{"name": "a", "bogus": 1}]}},
        {"spec": {"items": [{"value": "1"}]}},
        {"spec": {"items": [{"name": None}]}},
        {"spec": {"ports": [{"protocol": "UDP"}]}},
        {"spec": {"ports": [{"port": 1}, {"port": 1.0}]}},
        {"spec": {"numbers": [1, 1.0]}},
        {"spec": {"tags": ["x", 1]}},
        {"spec": {"amount": [1]}},
        {"spec": {"amount": {"a": 1}}},
        {"spec": {"structs": {"a": 1}}},
        {"spec": {"embedded": {"bogus": {"a": 1}, "metadata": {"bogus": 1}}}},
        {"spec": {"name": None}},
        {"spec": None},
        {"status": {"bogus": 1}},
    ],
)
def test_a_custom_resource_that_does_not_fit_is_refused_in_the_same_words(things: Subject, said: Json) -> None:
    base = things.fresh()
    live = compared(things, None, Write("POST", "m2", base, things.doors[0]))
    compared(things, live, applied(things, base["metadata"]["name"], said))


@pytest.mark.parametrize(
    ("how", "body"),
    [
        ("json", {"op": "x"}),
        ("json", "x"),
        ("json", 1),
        ("json", True),
        ("json", None),
        ("json", []),
        ("json", [None]),
        ("json", [1]),
        ("json", ["x"]),
        ("json", [[]]),
        ("json", [{}]),
        ("json", [{"op": 1, "path": "/data/a"}]),
        ("json", [{"op": "add", "path": 1}]),
        ("json", [{"op": "move", "path": "/data/a", "from": ["x"]}]),
        ("json", [{"op": "add", "path": None, "value": "1"}]),
        ("json", [{"op": "add", "path": "", "value": "1"}]),
        ("json", [{"op": "replace", "path": "", "value": "1"}]),
        ("json", [{"op": "add", "path": "data/z", "value": {"a": "1"}}]),
        ("json", [{"op": "replace", "path": "/data/new", "value": "1"}]),
        ("json", [{"op": "copy", "from": "/data/nowhere", "path": "/data/a"}]),
        ("json", [{"op": "move", "from": "/data/nowhere", "path": "/data/a"}]),
        ("json", [{"op": "test", "path": "/data/nowhere", "value": None}]),
        ("json", [{"op": "test", "path": "/data/nowhere"}]),
        ("json", [{"op": "test", "path": "/nowhere/nowhere"}]),
        ("json", [{"op": "add", "path": "/data/a"}]),
        ("json", [{"op": "remove", "path": "/metadata/finalizers/-2"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/-1", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/+1", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/01", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/2", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/3", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/ 1", "value": "ex.io/z"}]),
        ("json", [{"op": "replace", "path": "/metadata/finalizers/-", "value": "ex.io/z"}]),
        ("json", [{"op": "test", "path": "/data", "value": {"b": "1", "a": "1"}}]),
        ("json", [{"op": "test", "path": "/metadata/finalizers", "value": ["ex.io/a", "ex.io/b"]}]),
        ("json", [{"op": "add", "path": "/metadata/annotations/a~1b~0c", "value": "1"}]),
        ("json", [{"op": "copy", "from": "/data", "path": "/binaryData"}, {"op": "remove", "path": "/binaryData/a"}]),
        ("json", [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001),
        ("merge", None),
        ("merge", []),
        ("merge", "x"),
        ("merge", 1),
        ("merge", {"data": None}),
        ("merge", {"data": "x"}),
        ("merge", {"data": {"a": None, "c": "1"}}),
        ("merge", {"immutable": False, "metadata": {"annotations": {"a": None}}}),
        ("strategic", None),
        ("strategic", []),
        ("strategic", "x"),
        ("strategic", {"$patch": "merge"}),
        ("strategic", {"$patch": 1}),
        ("strategic", {"$patch": None}),
        ("strategic", {"data": {"$patch": "replace", "z": "1"}}),
        ("strategic", {"data": {"$patch": "delete"}}),
        ("strategic", {"data": {"$patch": "bogus", "z": None}}),
        ("strategic", {"binaryData": {"$patch": "replace", "z": "AA=="}}),
        ("strategic", {"data": {"$retainKeys": ["a"]}}),
        ("strategic", {"data": {"$retainKeys": ["a", "c"], "c": "1"}}),
        ("strategic", {"data": {"$retainKeys": ["a"], "c": "1"}}),
        ("strategic", {"data": {"$retainKeys": "a"}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": None}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["ex.io/a"]}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": "ex.io/a"}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": [1]}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList": ["ex.io/a"]}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveListX/finalizers": ["ex.io/a"]}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/bogus": ["ex.io/a"]}}),
        ("strategic", {"metadata": {"$setElementOrder/finalizers": ["ex.io/b", "ex.io/a"]}}),
        ("strategic", {"metadata": {"$setElementOrder/finalizers": "x"}}),
        ("strategic", {"metadata": {"$setElementOrder": ["x"]}}),
        ("strategic", {"metadata": {"$setElementOrder/bogus": ["x"]}}),
        ("strategic", {"metadata": {"$setElementOrder/labels": ["x"]}}),
        ("strategic", {"metadata": {"$setElementOrder/ownerReferences": [{"uid": "x"}]}}),
        ("strategic", {"metadata": {"finalizers": [1]}}),
        ("strategic", {"metadata": {"finalizers": [["x"]]}}),
        ("strategic", {"metadata": {"FINALIZERS": ["ex.io/c"]}}),
        ("strategic", {"metadata": {"ownerReferences": [{"name": "x"}]}}),
        ("strategic", {"data": {"a": {"b": "c"}}}),
        ("strategic", {"data": {"a": ["b"]}}),
    ],
)
def test_odd_patches_end_alike(config_maps: Subject, how: str, body: Any) -> None:
    finalizers = {"metadata": {"finalizers": ["ex.io/a", "ex.io/b"]}, "data": {"a": "1", "b": "1"}}
    live = created(config_maps, finalizers)
    compared(config_maps, live, Write(how, "m2", body, config_maps.doors[0]))


@pytest.mark.parametrize(
    "body",
    [
        template(containers=[{"image": "x"}]),
        template(containers=[{"$patch": "delete"}]),
        template(containers=[{"name": "a", "$patch": "merge"}]),
        template(containers=[{"name": "a", "$patch": "bogus", "tty": None}]),
        template(containers=[{"name": "a"}, "x"]),
        template(containers=[{"name": "z", "image": "i", "env": [{"name": "A", "$patch": "delete"}, {"name": "B"}]}]),
        template(containers=[{"name": "z", "image": "i", "env": [{"name": "A", "value": None}]}]),
        template(containers=[{"$patch": "replace"}, {"name": "z", "image": "i"}]),
        template(containers=[{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]}]),
        template(**{"$setElementOrder/containers": [{"image": "x"}]}),
        template(**{"$setElementOrder/containers": ["x"]}),
        template(**{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
        template(**{"$setElementOrder/restartPolicy": [{"name": "b"}]}),
        template(tolerations=[{"key": "a", "$patch": "delete"}]),
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
        {"spec": {"selector": {"$patch": "replace", "matchLabels": {"app": "x"}}}},
        {"spec": {"$patch": "delete"}},
        {"spec": {"template": {"$patch": "replace"}}},
        {"$patch": "replace"},
        {"$patch": "delete"},
    ],
)
def test_odd_strategic_patches_of_pods_end_alike(deployments: Subject, body: Json) -> None:
    live = created(
        deployments, {"spec": {"template": {"spec": {"containers": [{"name": n, "image": "i"} for n in "ab"]}}}}
    )
    compared(deployments, live, Write("strategic", "m2", body, deployments.doors[0]))


def ages(entries: list[Json] | None) -> list[Json]:
    """Make new times comparable, as `masked` does."""
    return list(masked({"metadata": {"managedFields": entries or []}})["metadata"]["managedFields"])


@pytest.fixture(scope="module")
def scales(server: Server) -> Endpoint:
    topology = server.schemas("apis/autoscaling/v1").topology("io.k8s.api.autoscaling.v1.Scale")
    return Endpoint("autoscaling/v1", "Scale", {"autoscaling/v1": topology}, subresource="scale")


def scaled(live: Json, scale: Json, write: Write, endpoint: Endpoint) -> list[Json]:
    """Say what managedFields of the object come of a write to its Scale."""
    paths = dict.fromkeys((live["apiVersion"], f"{GROUP}/v1", f"{GROUP}/v2"), "spec.replicas")
    shown = entries_of_scale(live["metadata"]["managedFields"], paths)
    old = {**scale, "metadata": {**scale["metadata"], "managedFields": shown}}
    if write.how == "apply":
        entries = apply_patch(
            old, write.body, manager=write.manager, endpoint=endpoint, now=NOW, force=True
        ).managed_fields
    else:
        new = apply_merge_patch(old, write.body)
        entries = track_update(old, new, manager=write.manager, endpoint=endpoint, now=NOW)
    return entries_of_object(live["metadata"]["managedFields"], entries, api_version=live["apiVersion"], replicas=paths)


@pytest.mark.parametrize("kind", ["things", "deployments"])
@pytest.mark.parametrize("first", ["POST", "apply"])
@pytest.mark.parametrize("how", ["merge", "apply"])
@pytest.mark.parametrize("replicas", [1, 5])
@pytest.mark.parametrize("by", ["m1", "m2"])
def test_a_scale_moves_the_ownership_of_replicas(
    request: pytest.FixtureRequest, scales: Endpoint, kind: str, first: str, how: str, replicas: int, by: str
) -> None:
    subject: Subject = request.getfixturevalue(kind)
    base = apply_merge_patch(subject.fresh(), {"spec": {"replicas": 1}})
    live = compared(subject, None, Write(first, "m1", base, subject.doors[0]))
    assert live is not None
    name = live["metadata"]["name"]
    path = f"{subject.doors[0].path(name)}/scale"
    body: Json = {"spec": {"replicas": replicas}}
    if how == "apply":
        body |= {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}}
    write = Write(how, by, body, subject.doors[0], force=True)
    expected = scaled(live, subject.server.ask("GET", path)[1], write, scales)

    status, answer = subject.server.ask("PATCH", path, body, kind=CONTENT_TYPES[how], **write.query)

    if kind == "things" and how == "apply" and replicas == 5:
        # The real server cannot apply a change to the Scale of a custom resource.
        assert status == 500
        assert "request to convert CR to an invalid group/version: autoscaling/v1" in answer["message"]
        return
    assert status == 200, answer
    after = subject.live(name, subject.doors[0])
    assert ages(after["metadata"]["managedFields"]) == ages(expected)


def test_what_becomes_atomic_is_owned_as_a_whole(server: Server, things: Subject) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hardening.{GROUP}"
    crd = json.loads(json.dumps(CRD))
    crd["metadata"]["name"] = f"hardening.{GROUP}"
    crd["spec"]["names"] = {"plural": "hardening", "kind": "Hardening"}
    assert server.ask("POST", path.rpartition("/")[0], crd)[0] == 201
    collection = f"/apis/{GROUP}/v1/namespaces/default/hardening"
    while server.ask("GET", collection)[0] != 200:
        pass
    base = {"apiVersion": f"{GROUP}/v1", "kind": "Hardening", "metadata": {}}
    versions = dict(things.doors[0].endpoint.topologies)
    endpoint = replace(things.doors[0].endpoint, kind="Hardening", topologies=versions)
    subject = Subject(server, [Door(collection, endpoint)], base)
    said = {"spec": {"labels": {"a": "1"}, "tags": ["x"], "struct": {"a": 1}, "items": [{"name": "a", "words": ["x"]}]}}
    live: Json | None = created(subject, said)
    assert live is not None
    live = compared(subject, live, applied(subject, live["metadata"]["name"], said, by="m2"))

    harder = json.loads(json.dumps(SCHEMA))
    spec = harder["properties"]["spec"]["properties"]
    spec["labels"]["x-kubernetes-map-type"] = spec["struct"]["x-kubernetes-map-type"] = "atomic"
    spec["tags"]["x-kubernetes-list-type"] = "atomic"
    spec["items"]["items"]["properties"]["words"]["x-kubernetes-list-type"] = "atomic"
    versions |= dict.fromkeys(versions, custom_resource_topology(harder, server.schemas("api/v1")))
    changes = [
        {"op": "replace", "path": f"/spec/versions/{place}/schema/openAPIV3Schema", "value": harder} for place in (0, 1)
    ]
    assert server.ask("PATCH", path, changes, kind=CONTENT_TYPES["json"])[0] == 200
    probe = {**base, "metadata": {"name": "probe"}, "spec": {"tags": ["x", "x"]}}
    # The new schema is in force when an apply no longer minds that an item is there twice.
    while server.ask("PATCH", f"{collection}/probe", probe, kind=CONTENT_TYPES["apply"], fieldManager="p")[0] != 201:
        pass

    live = compared(subject, live, Write("merge", "m3", {"metadata": {"labels": {"z": "1"}}}, subject.doors[0]))
    assert live is not None
    live = compared(
        subject, live, applied(subject, live["metadata"]["name"], {"spec": {"tags": ["y"]}}, by="m2", force=True)
    )
    assert live is not None
    compared(subject, live, applied(subject, live["metadata"]["name"], {}, by="m2"))


def test_an_entry_of_a_version_that_is_gone_ends_the_tracking_of_a_custom_resource(things: Subject) -> None:
    live: Json | None = created(things, {"spec": {"name": "x", "replicas": 1}})
    assert live is not None
    gone = {"apiVersion": f"{GROUP}/v0", "operation": "Apply"}
    entries = [*live["metadata"]["managedFields"], entry("gone", {"f:spec": {"f:replicas": {}}}, **gone)]
    sent = {**live, "metadata": {**live["metadata"], "managedFields": entries}}
    live = compared(things, live, Write("PUT", "m1", sent, things.doors[0]))
    compared(things, live, Write("merge", "m2", {"spec": {"name": "y"}}, things.doors[0]))


@pytest.mark.parametrize("agent", ["kubectl/v1.36 (linux)", "", "a\tb c", "é" * 100, "/x", "curl"])
def test_a_writer_without_a_name_goes_by_its_user_agent(server: Server, agent: str) -> None:
    status, answer = server.ask("POST", "/api/v1/namespaces/default/configmaps", named("agent-"), agent=agent)
    assert status == 201, answer
    expected = manager_name("", agent) or "unknown"
    assert answer["metadata"]["managedFields"][0]["manager"] == expected


def named(prefix: str) -> Json:
    return {"metadata": {"generateName": prefix}, "data": {"a": "1"}}
