"""Time to decode and encode a Pod of 4.5 kB, and its memory: konverge's typed models, dicts and the peers' models.

Run by `make bench-objects`. Each contender decodes JSON bytes into its own model and encodes that into JSON bytes.
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
from functools import partial
from typing import Any

import msgspec
import orjson
import pydantic
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration
from lightkube.core.decoders import decode_object
from lightkube.resources.core_v1 import Pod as LightkubePod
from measurement import measure_rounds, microseconds, save_result, table, verdict
from sample_pod import pod_bytes

from konverge.k8s.core.v1 import Pod
from konverge.objects import decode, encode, full_object

HELD = 500
"""Number of pods that are held in memory to measure the size of one."""

DATA = pod_bytes()


@dataclass(frozen=True)
class Contender:
    name: str
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]


class _Response:
    """A response as kubernetes_asyncio's deserializer expects it."""

    def __init__(self, data: bytes) -> None:
        self.data = data.decode()


def _kubernetes_asyncio() -> Contender:
    # Without a connection pool: only the models are used here.
    client = ApiClient.__new__(ApiClient)
    client.configuration = Configuration()
    return Contender(
        "kubernetes_asyncio",
        lambda data: client.deserialize(_Response(data), "V1Pod"),
        lambda pod: json.dumps(client.sanitize_for_serialization(pod)).encode(),
    )


def _pydantic() -> Contender:
    """Return a contender with pydantic models that have the same fields as konverge's models."""
    models: dict[Any, Any] = {}

    def model_of(cls: Any) -> Any:
        if cls in models:
            return models[cls]
        models[cls] = None  # a recursive type would appear as None; the Pod has none
        fields: dict[str, Any] = {}
        for one in msgspec.structs.fields(cls):
            required = one.required
            default = pydantic.Field(alias=one.encode_name) if required else pydantic.Field(None, alias=one.encode_name)
            kind = translate(one.type)
            fields[one.name] = (kind if required else kind | None, default)
        models[cls] = pydantic.create_model(cls.__name__, **fields)
        return models[cls]

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
        Contender("konverge, edited", lambda data: decode(Pod, data), lambda pod: encode(full_object(pod))),
        Contender("json to dict", json.loads, lambda pod: json.dumps(pod).encode()),
        Contender("orjson to dict", orjson.loads, orjson.dumps),
        Contender("lightkube", lambda data: decode_object(data, LightkubePod), msgspec.json.encode),
        _kubernetes_asyncio(),
        _pydantic(),
    ]


def bytes_held(contender: Contender) -> float:
    """Return the memory of one decoded pod in bytes, including its source text if the contender keeps it."""
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
    """Return the CPU time of an import in a new interpreter with cached byte code."""
    code = f"import time; begin = time.process_time(); import {module}; print((time.process_time() - begin) * 1e3)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(process.stdout)


def imports() -> tuple[str, list[str]]:
    """Measure the cost of imports; every group is imported with its dependencies."""
    groups = [f"konverge.k8s.{group}.v1" for group in ("core", "apps", "batch", "networking", "rbac")]
    modules = ["konverge", *groups]
    for module in modules:
        import_milliseconds(module)
    measured = measure_rounds({module: partial(import_milliseconds, module) for module in modules}, rounds=9)
    slowest = max(measured[group].median for group in groups)
    top_level = measured["konverge"].median
    return table("Import", "ms", measured, "konverge"), [
        verdict(f"import konverge under 150 ms ({top_level:.0f} ms)", top_level < 150),
        verdict(f"one group under 60 ms ({slowest:.0f} ms at most)", slowest < 60),
    ]


def main() -> None:
    candidates = contenders()
    typed = [one for one in candidates if one.name != "konverge, edited"]
    decoding = measure_rounds({one.name: lambda one=one: microseconds(lambda: one.decode(DATA)) for one in typed})  # type: ignore[misc]
    objects = {one.name: one.decode(DATA) for one in candidates}
    objects["konverge, edited"].metadata.labels["edited"] = "yes"
    encoding = measure_rounds(
        {one.name: lambda one=one: microseconds(lambda: one.encode(objects[one.name])) for one in candidates}  # type: ignore[misc]
    )
    holding = measure_rounds({one.name: partial(bytes_held, one) for one in typed}, rounds=1)
    decode_times = {name: one.median for name, one in decoding.items()}
    encode_times = {name: one.median for name, one in encoding.items()}
    verdicts = [
        verdict(f"{claim} ({ratio:.2f}x)", holds)
        for claim, ratio, holds in (
            (
                "typed decode at most 1.2x orjson-to-dict",
                decode_times["konverge"] / decode_times["orjson to dict"],
                decode_times["konverge"] <= 1.2 * decode_times["orjson to dict"],
            ),
            (
                "typed decode at least 20x faster than kubernetes_asyncio's models",
                decode_times["kubernetes_asyncio"] / decode_times["konverge"],
                decode_times["kubernetes_asyncio"] >= 20 * decode_times["konverge"],
            ),
            (
                "typed decode no slower than lightkube's",
                decode_times["konverge"] / decode_times["lightkube"],
                decode_times["konverge"] <= decode_times["lightkube"],
            ),
            (
                "encode at least as fast as orjson",
                encode_times["konverge"] / encode_times["orjson to dict"],
                encode_times["konverge"] <= encode_times["orjson to dict"],
            ),
        )
    ]
    import_table, import_verdicts = imports()
    verdicts += import_verdicts
    save_result(
        "objects",
        f"One Pod of {len(DATA)} bytes; CPU time, median of 15 shuffled rounds.\n\n"
        + table("Decode", "us", decoding, "orjson to dict")
        + "\n"
        + table("Encode", "us", encoding, "orjson to dict")
        + "\n'konverge, edited' is an object that was decoded and changed, and is encoded with its unknown fields.\n\n"
        + table("Held by one decoded Pod (konverge keeps the source text)", "bytes", holding, "orjson to dict")
        + "\n"
        + import_table
        + "\n"
        + "\n".join(verdicts)
        + "\n",
    )


if __name__ == "__main__":
    main()
