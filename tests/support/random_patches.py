"""Random objects and writes: keys are optional and values are from small sets, so that writes overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from konverge_cluster.patches import apply_merge_patch
from patch_writes import Json, PatchedResource, ResourcePath, Write, compared


class RandomObjects:
    """Generates parts of objects: keys are optional and values are from small sets, so that writes overlap."""

    def __init__(self, rng: Random, *, nulls: bool = False, directives: bool = False) -> None:
        self.rng = rng
        self.directives = directives
        self._nulls = nulls

    def one(self, *values: Any) -> Any:
        return self.rng.choice(values)

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def some(self, **parts: Callable[[], Any]) -> Json:
        """Return an object with a random subset of the keys."""
        made = {name.replace("__", "/"): make() for name, make in parts.items() if self.chance(0.55)}
        return {name: None if self._nulls and self.chance(0.08) else value for name, value in made.items()}

    def map_of(self, keys: str, *values: Any) -> Json:
        return self.some(**{key: lambda: self.one(*values) for key in keys.split()})

    def list_of(self, *values: Any) -> list[Any]:
        return self.rng.sample(values, self.rng.randint(0, len(values)))

    def keyed(self, key: str, values: list[Any], item: Callable[[], Json]) -> list[Json]:
        """Return items of a list that is a map by one key, sometimes with directives."""
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
        """Sometimes add `$setElementOrder`."""
        items = made.get(field_name)
        if not self.directives or not isinstance(items, list) or not self.chance(0.3):
            return made
        known = [item[key] for item in items if key in item and "$patch" not in item]
        order = [{key: value} for value in dict.fromkeys([*known, *self.rng.sample(["a", "b", "c", "A", "B"], 2)])]
        if self.chance(0.1):
            self.rng.shuffle(order)
        return {**made, f"$setElementOrder/{field_name}": order}


Shape = Callable[[RandomObjects], Json]


def metadata(draw: RandomObjects) -> Json:
    made = draw.some(
        labels=lambda: draw.map_of("a b c", "1", "2"),
        annotations=lambda: draw.map_of("a b c", "1", "2"),
        finalizers=lambda: draw.list_of("ex.io/a", "ex.io/b", "ex.io/c"),
    )
    if draw.directives and draw.chance(0.2):
        desired = made.get("finalizers") or []
        made["$deleteFromPrimitiveList/finalizers"] = [f for f in ("ex.io/a", "ex.io/b") if f not in desired]
    if draw.directives and draw.chance(0.1):
        made["$setElementOrder/finalizers"] = draw.list_of("ex.io/a", "ex.io/b", "ex.io/c")
    return made


def container(draw: RandomObjects) -> Json:
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


def pod_spec(draw: RandomObjects) -> Json:
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


def deployment(draw: RandomObjects) -> Json:
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


def conditions(draw: RandomObjects) -> list[Json]:
    return draw.keyed(
        "type", ["A", "B"], lambda: {"status": draw.one("True", "False"), **draw.some(reason=lambda: "R")}
    )


def config_map(draw: RandomObjects) -> Json:
    made = draw.some(data=lambda: draw.map_of("a b c", "1", "2"), binaryData=lambda: draw.map_of("d e", "AA==", "AQ=="))
    return {"metadata": metadata(draw), **made}


def service(draw: RandomObjects) -> Json:
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


def thing(draw: RandomObjects) -> Json:
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
    """Return a random operation that nearly always applies to the live object."""
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


def run(resource: PatchedResource, rng: Random, shape: Shape) -> None:
    """Create an object and execute several writes, one after another."""
    made = apply_merge_patch(resource.fresh(), shape(RandomObjects(rng)))
    write = Write(rng.choice(["apply", "POST"]), manager(rng), made, resource.resource_paths[0])
    live = compared(resource, None, write)
    for _ in range(rng.randint(2, 7)):
        if live is None:
            return
        resource_path = rng.choice(resource.resource_paths)
        live = resource.live(live["metadata"]["name"], resource_path)
        live = compared(resource, live, any_write(rng, live, shape, resource_path))


def any_write(rng: Random, live: Json, shape: Shape, resource_path: ResourcePath) -> Write:
    """Return a random write to a live object."""
    hows = ["apply"] * 4 + ["merge", "json", "PUT"] + ["strategic"] * 2 * resource_path.endpoint.topology.structured
    how = rng.choice(hows)
    draw = RandomObjects(rng, nulls=how in ("merge", "strategic"), directives=how == "strategic")
    body: Any = shape(draw)
    if how == "apply":
        identity = {"apiVersion": live["apiVersion"], "kind": live["kind"]}
        named = {**body.get("metadata", {}), "name": live["metadata"]["name"]}
        body = {**identity, **body, "metadata": named}
    elif how == "PUT":
        body = apply_merge_patch(live, body)
    elif how == "json":
        roots = ("/metadata/", "/status") if resource_path.endpoint.subresource else ("/metadata/", "/spec", "/data")
        body = [json_operation(rng, live, roots) for _ in range(rng.randint(1, 3))]
    return Write(how, manager(rng), body, resource_path, force=rng.random() < 0.4)


def manager(rng: Random) -> str:
    return rng.choice(["m1", "m2", "m3"])
