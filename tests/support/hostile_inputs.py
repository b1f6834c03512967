"""Requests that cost a server far more than they cost their sender, and the program that measures what they cost.

`python hostile_inputs.py NAME...` sends some of them to embedded servers in this process, and prints as JSON what each
got: the status, the message, and how much CPU time (seconds) and memory (bytes) the response took.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import sys
from dataclasses import dataclass
from typing import Any, Final

from konverge.wire.messages import Request
from konverge_cluster.embedded_server import EmbeddedServer

__all__ = ["BOMBS", "DEFINITION", "FORMATS", "HOSTILE", "MAPS", "HostileRequest"]

MAPS: Final = "/api/v1/namespaces/default/configmaps"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TRAPS: Final = "/apis/hostile.example/v1/namespaces/default/traps"
_JSON, _YAML, _APPLY = "application/json", "application/yaml", "application/apply-patch+yaml"
_DIGITS: Final = "1" * 5000


@dataclass(frozen=True)
class HostileRequest:
    """A request; the object that it patches, `target`, exists, and so does the kind Trap. Nothing is stored."""

    method: str
    path: str
    content_type: str
    body: bytes
    query: str = "dryRun=All"


def _definition(plural: str, rule: str = "") -> dict[str, Any]:
    numbers = {"number": {"type": "number"}, "integer": {"type": "integer"}}
    root: dict[str, Any] = {"type": "object", "properties": {"spec": {"type": "object", "properties": numbers}}}
    if rule:
        root["x-kubernetes-validations"] = [{"rule": rule}]
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    names = {"plural": plural, "kind": plural.title().rstrip("s")}
    spec = {"group": "hostile.example", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.hostile.example"}, "spec": spec}


DEFINITION: Final = _definition("traps")


def _yaml_bomb(value: str, nested: str, levels: int = 9) -> bytes:
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata: {name: target}", f"a0: &a0 {value}"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} {nested.format(', '.join([f'*a{level - 1}'] * 9))}")
    return "\n".join(lines).encode()


def _create(document: Any, path: str = MAPS) -> HostileRequest:
    return HostileRequest(
        "POST", path, _JSON, document if isinstance(document, bytes) else json.dumps(document).encode()
    )


def _trap(spec: str, content_type: str = _JSON) -> HostileRequest:
    head = '{"apiVersion": "hostile.example/v1", "kind": "Trap", "metadata": {"name": "new"}, "spec": '
    return HostileRequest("POST", _TRAPS, content_type, f"{head}{spec}}}".encode())


def _patch(body: Any, kind: str) -> HostileRequest:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HostileRequest("PATCH", f"{MAPS}/target", f"application/{kind}+json", content)


def _rule(text: str) -> HostileRequest:
    return _create(_definition("rules", text), _DEFINITIONS)


def _owners(count: int) -> HostileRequest:
    owners = [{"apiVersion": "v1", "kind": "A", "name": f"n{index}", "uid": f"u{index}"} for index in range(count)]
    return _create({"metadata": {"name": "new", "ownerReferences": owners}})


_DOUBLING: Final = [
    {"op": "add", "path": "/x", "value": ["aaaaaaaaaa"] * 5},
    *({"op": "copy", "from": "/x", "path": "/x/-"} for _ in range(30)),
]
_COPIES: Final = [
    {"op": "add", "path": "/data", "value": {"a": "a" * 200_000}},
    *({"op": "copy", "from": "/data/a", "path": f"/data/b{index}"} for index in range(9000)),
]
_CRON_JOB: Final = {
    "metadata": {"name": "new"},
    "spec": {
        "schedule": f"{_DIGITS} * * * *",
        "jobTemplate": {
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
        },
    },
}

HOSTILE: Final[dict[str, HostileRequest]] = {
    "merge keys in YAML": HostileRequest("POST", MAPS, _YAML, _yaml_bomb("{k: v}", "{{<<: [{}]}}")),
    "merge keys in an applied YAML": HostileRequest(
        "PATCH", f"{MAPS}/target", _APPLY, _yaml_bomb("{k: v}", "{{<<: [{}]}}"), "dryRun=All&fieldManager=m"
    ),
    "aliases in YAML": HostileRequest("POST", MAPS, _YAML, _yaml_bomb("[x]", "[{}]")),
    "copies that double": _patch(_DOUBLING, "json-patch"),
    "many copies of a long text": _patch(_COPIES, "json-patch"),
    "10,000 owners": _owners(10_000),
    "10,000 times the same owner": _create(
        {
            "metadata": {
                "name": "new",
                "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "n", "uid": "u"}] * 10_000,
            }
        }
    ),
    "digits of a generation": _create(f'{{"metadata": {{"name": "new", "generation": {_DIGITS}}}}}'.encode()),
    "digits of an unknown field": _create(f'{{"metadata": {{"name": "new"}}, "x": {_DIGITS}}}'.encode()),
    "digits in YAML": HostileRequest("POST", MAPS, _YAML, f"{{metadata: {{name: new}}, x: {_DIGITS}}}".encode()),
    "digits to the base 60 in YAML": HostileRequest(
        "POST", MAPS, _YAML, f"{{metadata: {{name: new}}, x: 1{':1' * 5000}}}".encode()
    ),
    "digits in a merge patch": _patch(f'{{"metadata": {{"generation": {_DIGITS}}}}}'.encode(), "merge-patch"),
    "digits in a strategic patch": _patch(
        f'{{"metadata": {{"generation": {_DIGITS}}}}}'.encode(), "strategic-merge-patch"
    ),
    "digits in a JSON patch": _patch(
        f'[{{"op": "add", "path": "/metadata/generation", "value": {_DIGITS}}}]'.encode(), "json-patch"
    ),
    "digits of an index in a JSON patch": _patch(
        [
            {"op": "add", "path": "/metadata/finalizers", "value": []},
            {"op": "add", "path": f"/metadata/finalizers/{_DIGITS}", "value": "a/b"},
        ],
        "json-patch",
    ),
    "digits of a grace period": HostileRequest(
        "DELETE", f"{MAPS}/target", _JSON, f'{{"gracePeriodSeconds": {_DIGITS}}}'.encode()
    ),
    "digits of a schedule": _create(_CRON_JOB, "/apis/batch/v1/namespaces/default/cronjobs"),
    "digits of an integer of a custom resource": _trap(f'{{"integer": {_DIGITS}}}'),
    "digits of a number of a custom resource": _trap(f'{{"number": {_DIGITS}}}'),
    "digits of a pruned field": _trap(f'{{"other": {_DIGITS}}}'),
    "digits of a custom resource in YAML": _trap(f"{{integer: {_DIGITS}}}", _YAML),
    "an exponent that no float holds": _trap('{"number": 1e999999}'),
    "digits of a maximum in a schema": _create(
        json.dumps(_definition("rules")).replace('"integer"}', f'"integer", "maximum": {_DIGITS}}}').encode(),
        _DEFINITIONS,
    ),
    "digits of a precision in CEL": _rule(f"'%.{_DIGITS}f'.format([1.0]) != ''"),
    "digits of an int in CEL": _rule(f"{_DIGITS} > 1"),
    "digits of a negative int in CEL": _rule(f"-{_DIGITS} > 1"),
    "digits of a uint in CEL": _rule(f"{_DIGITS}u > 1u"),
    "digits of an exponent in CEL": _rule(f"1e{_DIGITS} > 1.0"),
    "500 parentheses in CEL": _rule("(" * 500 + "true" + ")" * 500),
    "240 parentheses in CEL": _rule("(" * 240 + "true" + ")" * 240),
    "5,000 parentheses in CEL": _rule("(" * 5000 + "true" + ")" * 5000),
    "500 lists in CEL": _rule("[" * 500 + "1" + "]" * 500 + " != []"),
    "300 maps in CEL": _rule("{'a':" * 300 + "1" + "}" * 300 + " != {}"),
    "500 calls in CEL": _rule("size(" * 500 + "[1]" + ")" * 500 + " > 1"),
    "a sum of 240 in CEL": _rule("+".join(["1"] * 240) + " > 1"),
    "a sum of 3,000 in CEL": _rule("+".join(["1"] * 3000) + " > 1"),
    "3,000 conditions in CEL": _rule(" && ".join(["true"] * 3000)),
    "2,000 fields in CEL": _rule("self" + ".a" * 2000 + " == 1"),
    "2,000 indexes in CEL": _rule("[1]" + "[0]" * 2000 + " == 1"),
    "a long text in CEL": _rule("'" + "a" * 100_000 + "' != ''"),
}

BOMBS: Final = tuple(name for name in HOSTILE if not name.startswith("digits") and not name.endswith("in CEL"))
"""Those that took gigabytes or minutes."""

FORMATS: Final = tuple(
    f"'%.{precision}'.format([1.5])" for precision in ("999999999f", "999999999e", "5000f", "1000001f")
)
"""Texts in CEL that would be very long; as the message of a rule they are short, or cut."""


async def _measure(hostile: HostileRequest) -> dict[str, Any]:
    server = EmbeddedServer()
    for path, document in ((MAPS, {"metadata": {"name": "target"}}), (_DEFINITIONS, DEFINITION)):
        body = json.dumps(document).encode()
        await server.handle(Request("POST", path, (), {"content-type": _JSON}, body=body))
    await asyncio.sleep(0)
    query = tuple(tuple(each.split("=")) for each in hostile.query.split("&"))
    headers = {"content-type": hostile.content_type, "accept": _JSON}
    before = resource.getrusage(resource.RUSAGE_SELF)
    response = await server.handle(Request(hostile.method, hostile.path, query, headers, body=hostile.body))  # type: ignore[arg-type]
    status = json.loads(await response.read())
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "code": response.status,
        "message": status.get("message", ""),
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "memory": (after.ru_maxrss - before.ru_maxrss) * 1024,
    }


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    sys.stdout.write(json.dumps([asyncio.run(_measure(HOSTILE[name])) for name in sys.argv[1:]]))
