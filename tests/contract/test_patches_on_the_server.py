"""The patch engines against a real API server: the same writes, the same objects, the same owners.

Each example is a sequence of writes by several managers, drawn by hypothesis, always the same ones. Before each write the
engine says what will come of it, from the server's live object; then the server does it. Two things make that exact:

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
from dataclasses import dataclass, field
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
    keep_times,
    make_set,
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

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **query: str) -> tuple[int, Any]:
        target = f"{path}?{urlencode(query)}" if query else path
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, target, sent, {"Content-Type": kind, "User-Agent": "tester/1"})
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


@dataclass(repr=False)
class Subject:
    """A resource that writes are tried on."""

    server: Server
    endpoint: Endpoint
    path: str
    base: Json
    names: Iterator[int] = field(default_factory=lambda: itertools.count())

    def fresh(self) -> Json:
        """Give the base object with a name that no object has."""
        base: Json = json.loads(json.dumps(self.base))
        base["metadata"]["name"] = f"o{next(self.names)}"
        return base


@dataclass
class Write:
    """One write: how (POST, PUT or a patch), by whom, and what."""

    how: str
    manager: str
    body: Any
    force: bool = False

    @property
    def query(self) -> dict[str, str]:
        forced = {"force": "true"} if self.how == "apply" and self.force else {}
        return {"fieldManager": self.manager, **forced}


def engine_patch(subject: Subject, live: Json, write: Write) -> Json:
    """Do a patch other than apply with the engine."""
    if write.how == "json":
        patched: Json = apply_json_patch(live, write.body)
        return patched
    if write.how == "merge":
        return apply_merge_patch(live, write.body)
    return apply_strategic_patch(live, write.body, topology=subject.endpoint.topology)


def defaulted(subject: Subject, obj: Json, *, exists: bool) -> tuple[int, Json]:
    """Ask the server what it would store, without storing it."""
    sent = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
    if exists:
        status, answer = subject.server.ask("PUT", f"{subject.path}/{obj['metadata']['name']}", sent, dryRun="All")
    else:
        status, answer = subject.server.ask("POST", subject.path, sent, dryRun="All")
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
    try:
        if write.how == "apply":
            applied = apply_patch(
                live, write.body, manager=write.manager, endpoint=subject.endpoint, now=NOW, force=write.force
            )
            status, settled = defaulted(subject, applied.object, exists=live is not None)
            if leaves_null(applied.object):
                return 0, applied.object
            managed = applied.managed_fields
        else:
            changed = write.body if live is None or write.how == "PUT" else engine_patch(subject, live, write)
            status, settled = defaulted(subject, changed, exists=live is not None)
            if status < 300:
                # What the request says of managedFields counts; the dry run was asked without.
                new = with_managed(settled, changed["metadata"].get("managedFields") or [])
                managed = track_update(live, new, manager=write.manager, endpoint=subject.endpoint, now=NOW)
    except PatchError as wrong:
        return wrong.code, {"message": wrong.message, "reason": wrong.reason, "details": wrong.details}
    if status >= 300:
        return 0, settled
    expected = with_managed(settled, managed)
    return 200, with_managed(expected, keep_times(live, expected)) if live is not None else expected


def leaves_null(obj: Json) -> bool:
    """Tell whether an apply took all out of something whose field stays, which leaves null.

    The real server drops nulls that it decodes, not those that it makes: a custom resource is then invalid.
    """
    allowed = ("empty", "open", "free", "embedded")
    spec = obj.get("spec", {}) if obj["kind"] == "Thing" else {}
    return any(has_null(value) for key, value in spec.items() if key not in allowed)


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
    return {**obj, "metadata": {**metadata, "managedFields": entries}}


def perform(subject: Subject, live: Json | None, write: Write) -> tuple[int, Json]:
    """Do the write on the server."""
    ask = subject.server.ask
    if live is None and write.how != "apply":
        return ask("POST", subject.path, write.body, **write.query)
    name = (live or write.body)["metadata"]["name"]
    if write.how == "PUT":
        return ask("PUT", f"{subject.path}/{name}", write.body, **write.query)
    kind = CONTENT_TYPES[write.how]
    return ask("PATCH", f"{subject.path}/{name}", write.body, kind=kind, **write.query)


def aged(subject: Subject, obj: Json) -> Json:
    """Make every time of the live object old, so that new ones can be told.

    Times alone do not change on a server that sees no other change, so the entries go first and come back old.
    """
    entries = obj["metadata"].get("managedFields")
    path = f"{subject.path}/{obj['metadata']['name']}"
    for wish in [[{}], [{**entry, "time": AGED} for entry in entries]] if entries else []:
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": wish}]
        status, obj = subject.server.ask("PATCH", path, patch, kind=CONTENT_TYPES["json"])
        assert status == 200, obj
    return obj


def in_any_order(details: Json | None) -> Json | None:
    """Sort the causes: the real server lists managers at random."""
    if not details or "causes" not in details:
        return details
    return {**details, "causes": sorted(details["causes"], key=lambda cause: sorted(cause.items()))}


def compared(subject: Subject, live: Json | None, write: Write) -> Json | None:
    """Do one write on both, compare, and give the live object after it."""
    code, expected = expectation(subject, live, write)
    status, answer = perform(subject, live, write)
    told = json.dumps([write.how, write.manager, write.force, write.body])
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
    base = subject.fresh()
    first = Write(rng.choice(["apply", "POST"]), manager(rng), apply_merge_patch(base, shape(Draw(rng))))
    live = compared(subject, None, first)
    for _ in range(rng.randint(2, 7)):
        if live is None:
            return
        live = compared(subject, live, any_write(subject, rng, live, shape))


def any_write(subject: Subject, rng: Random, live: Json, shape: Shape) -> Write:
    """Draw a write to a live object."""
    hows = ["apply"] * 4 + ["merge", "json", "PUT"] + ["strategic"] * 2 * subject.endpoint.topology.structured
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
        body = [json_operation(rng, live) for _ in range(rng.randint(1, 3))]
    return Write(how, manager(rng), body, force=rng.random() < 0.4)


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
            made = [{**one, "$patch": self.one("delete", "delete", "replace")} if self.chance(0.1) else one for one in made]
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
            {"maxSkew": draw.one(1, 2), "topologyKey": "k", "whenUnsatisfiable": draw.one("DoNotSchedule", "ScheduleAnyway")}
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
    return {"metadata": metadata(draw), "spec": spec}


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
        ports=lambda: draw.list_of({"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 2, "protocol": "TCP", "note": "n"}),
        labels=lambda: draw.map_of("a b c", "1", "2"),
        whole=lambda: draw.map_of("a b", "1", "2"),
        pair=lambda: draw.map_of("a b", 1, 2),
        struct=lambda: draw.some(a=lambda: draw.one(1, 2), b=lambda: draw.one("x", "y"), c=lambda: draw.map_of("a", "1")),
        structs=lambda: draw.some(k=lambda: draw.map_of("x y", 1, 2), l=lambda: draw.map_of("x y", 1, 2)),
        embedded=lambda: {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", **draw.some(labels=lambda: draw.map_of("a b", "1", "2"))},
            **draw.some(spec=lambda: draw.map_of("a b", 1, 2)),
        },
    )
    made = {"metadata": metadata(draw), **draw.some(spec=lambda: spec)}
    return {**made, **({"status": draw.some(phase=lambda: draw.one("A", "B"))} if draw.chance(0.2) else {})}


def json_operation(rng: Random, live: Json) -> Json:
    """Draw an operation that fits the live object, nearly."""
    pointers = [pointer for pointer in all_pointers(live) if pointer.startswith(("/metadata/", "/spec", "/data"))]
    known = [pointer for pointer in pointers if "managedFields" not in pointer and pointer != "/metadata/name"]
    place = rng.choice([*known, "/metadata/labels/a", "/spec/replicas", "/data/a", "/metadata/finalizers/-"])
    other = rng.choice(known)
    value = rng.choice(["1", "x", 1, None, True, ["ex.io/a"], {"a": "1"}])
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
    topology = server.schemas(group).topology(schema)
    endpoint = Endpoint(version, base["kind"], {version: topology}, reset={version: make_set("status")})
    return Subject(server, endpoint, f"/{group}/namespaces/default/{plural}", base)


@pytest.fixture(scope="module")
def deployments(server: Server) -> Subject:
    return built_in(server, "apis/apps/v1", "io.k8s.api.apps.v1.Deployment", "deployments", DEPLOYMENT)


@pytest.fixture(scope="module")
def config_maps(server: Server) -> Subject:
    return built_in(server, "api/v1", "io.k8s.api.core.v1.ConfigMap", "configmaps", CONFIG_MAP)


@pytest.fixture(scope="module")
def services(server: Server) -> Subject:
    return built_in(server, "api/v1", "io.k8s.api.core.v1.Service", "services", SERVICE)


@pytest.fixture(scope="module")
def things(server: Server) -> Subject:
    path = f"/apis/{GROUP}/v1/namespaces/default/things"
    status, answer = server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    assert status == 201, answer
    while server.ask("GET", path)[0] != 200:
        pass
    topology = custom_resource_topology(SCHEMA, server.schemas("api/v1"))
    versions = {f"{GROUP}/{name}": topology for name in ("v1", "v2")}
    endpoint = Endpoint(f"{GROUP}/v1", "Thing", versions, reset=dict.fromkeys(versions, make_set("status")))
    return Subject(server, endpoint, path, THING)


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
