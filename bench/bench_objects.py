"""Decoding, encoding and holding a Pod of 4.5 kB: konverge's typed models against dicts and the peers' models.

Run by `make bench-objects`. Each contender reads JSON bytes and writes JSON bytes; what lies in between is its own.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
import pydantic
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration
from lightkube.core.decoders import decode_object
from lightkube.resources.core_v1 import Pod as LightkubePod
from measuring import in_rounds, keep, microseconds, table, verdict
from sample_pod import pod_bytes

from konverge.k8s.core.v1 import Pod
from konverge.objects import decode, encode, whole

HELD = 500
"""So many pods are held at once to see what one takes."""

DATA = pod_bytes()


@dataclass(frozen=True)
class Contender:
    name: str
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]


class _Answer:
    """What kubernetes_asyncio's deserializer takes for the answer of a server."""

    def __init__(self, data: bytes) -> None:
        self.data = data.decode()


def _kubernetes_asyncio() -> Contender:
    # Without its connection pool: only its models are used here.
    client = ApiClient.__new__(ApiClient)
    client.configuration = Configuration()
    return Contender(
        "kubernetes_asyncio",
        lambda data: client.deserialize(_Answer(data), "V1Pod"),
        lambda pod: json.dumps(client.sanitize_for_serialization(pod)).encode(),
    )


def _pydantic() -> Contender:
    """The same fields as konverge's models, made into pydantic's by walking the classes."""
    made: dict[Any, Any] = {}

    def model_of(cls: Any) -> Any:
        if cls in made:
            return made[cls]
        made[cls] = None  # a cycle would show as None; the Pod has none
        fields: dict[str, Any] = {}
        for one in msgspec.structs.fields(cls):
            required = one.required
            default = pydantic.Field(alias=one.encode_name) if required else pydantic.Field(None, alias=one.encode_name)
            kind = translate(one.type)
            fields[one.name] = (kind if required else kind | None, default)
        made[cls] = pydantic.create_model(cls.__name__, **fields)
        return made[cls]

    def translate(kind: Any) -> Any:
        if kind is msgspec.Raw:
            return dict[str, Any]
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return model_of(kind)
        arguments = getattr(kind, "__args__", None)
        if not arguments:
            return kind
        inner = tuple(translate(argument) for argument in arguments)
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            joined = inner[0]
            for one in inner[1:]:
                joined = joined | one
            return joined
        return origin[inner]

    model = model_of(Pod)
    return Contender(
        "pydantic",
        model.model_validate_json,
        lambda pod: pod.model_dump_json(by_alias=True, exclude_none=True).encode(),
    )


def contenders() -> list[Contender]:
    return [
        Contender("konverge", lambda data: decode(Pod, data), encode),
        Contender("konverge, edited", lambda data: decode(Pod, data), lambda pod: encode(whole(pod))),
        Contender("json to dict", json.loads, lambda pod: json.dumps(pod).encode()),
        Contender("orjson to dict", orjson.loads, orjson.dumps),
        Contender("lightkube", lambda data: decode_object(data, LightkubePod), msgspec.json.encode),
        _kubernetes_asyncio(),
        _pydantic(),
    ]


def bytes_held(contender: Contender) -> float:
    """Give the bytes that one decoded pod holds, its source text included where the contender keeps it."""
    copies = [pod_bytes(f"web-7c5ddbdf54-{number:05}") for number in range(HELD)]
    contender.decode(copies[0])
    gc.collect()
    tracemalloc.start()
    held = [contender.decode(bytes(bytearray(copy))) for copy in copies]
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(held) == HELD
    return size / HELD


def import_milliseconds(module: str) -> float:
    """Give the CPU time that an import takes in a fresh interpreter whose byte code is warm."""
    code = f"import time; begin = time.process_time(); import {module}; print((time.process_time() - begin) * 1e3)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def imports() -> tuple[str, list[str]]:
    """Measure what importing costs; every group is imported with all that it needs."""
    groups = [f"konverge.k8s.{group}.v1" for group in ("core", "apps", "batch", "networking", "rbac")]
    modules = ["konverge", *groups]
    for module in modules:
        import_milliseconds(module)
    measured = in_rounds({module: lambda module=module: import_milliseconds(module) for module in modules}, rounds=9)  # type: ignore[misc]
    slowest = max(measured[group].median for group in groups)
    front = measured["konverge"].median
    return table("Import", "ms", measured, "konverge"), [
        verdict(f"import konverge under 150 ms ({front:.0f} ms)", front < 150),
        verdict(f"one group under 60 ms ({slowest:.0f} ms at most)", slowest < 60),
    ]


def main() -> None:
    all_of_them = contenders()
    typed = [one for one in all_of_them if one.name != "konverge, edited"]
    decoding = in_rounds({one.name: lambda one=one: microseconds(lambda: one.decode(DATA)) for one in typed})  # type: ignore[misc]
    objects = {one.name: one.decode(DATA) for one in all_of_them}
    objects["konverge, edited"].metadata.labels["edited"] = "yes"
    encoding = in_rounds(
        {one.name: lambda one=one: microseconds(lambda: one.encode(objects[one.name])) for one in all_of_them}  # type: ignore[misc]
    )
    holding = in_rounds({one.name: lambda one=one: bytes_held(one) for one in typed}, rounds=1)  # type: ignore[misc]
    fast = {name: one.median for name, one in decoding.items()}
    written = {name: one.median for name, one in encoding.items()}
    verdicts = [
        verdict(f"{claim} ({ratio:.2f}x)", holds)
        for claim, ratio, holds in (
            (
                "typed decode at most 1.2x orjson-to-dict",
                fast["konverge"] / fast["orjson to dict"],
                fast["konverge"] <= 1.2 * fast["orjson to dict"],
            ),
            (
                "typed decode at least 20x faster than kubernetes_asyncio's models",
                fast["kubernetes_asyncio"] / fast["konverge"],
                fast["kubernetes_asyncio"] >= 20 * fast["konverge"],
            ),
            (
                "typed decode no slower than lightkube's",
                fast["konverge"] / fast["lightkube"],
                fast["konverge"] <= fast["lightkube"],
            ),
            (
                "encode at least as fast as orjson",
                written["konverge"] / written["orjson to dict"],
                written["konverge"] <= written["orjson to dict"],
            ),
        )
    ]
    import_table, import_verdicts = imports()
    verdicts += import_verdicts
    keep(
        "objects",
        f"One Pod of {len(DATA)} bytes; CPU time, median of 15 shuffled rounds.\n\n"
        + table("Decode", "us", decoding, "orjson to dict")
        + "\n"
        + table("Encode", "us", encoding, "orjson to dict")
        + "\n'konverge, edited' is an object that was read, edited, and is written with all it came with.\n\n"
        + table("Held by one decoded Pod (konverge keeps the source text)", "bytes", holding, "orjson to dict")
        + "\n"
        + import_table
        + "\n"
        + "\n".join(verdicts)
        + "\n",
    )


if __name__ == "__main__":
    main()
