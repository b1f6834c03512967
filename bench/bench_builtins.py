"""Cost of a built-in object in the embedded server: decoding, defaults, validation.

Run by `make bench-builtins`. Decoding works in place on a document that is parsed in each round; the cost of parsing is
subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from measurement import measure_rounds, microseconds, save_result, table, verdict
from sample_pod import pod_bytes

from konverge_cluster.api.documents import decode_and_default
from konverge_cluster.builtins.registration import builtin_strategies
from konverge_cluster.builtins.strategy import BuiltinStrategy

TARGETS = {"ConfigMap": 15.0, "Pod": 150.0}
"""Microseconds that decoding may take."""

SAMPLES = {
    "ConfigMap": msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "default"},
            "data": {f"key-{number}": "x" * 90 for number in range(10)},
        }
    ),
    "Pod": pod_bytes(),
}


def _strategy(kind: str) -> BuiltinStrategy:
    strategy = next(each for each in builtin_strategies() if each.info.kind.kind == kind)
    assert isinstance(strategy, BuiltinStrategy)
    return strategy


def _steps(kind: str) -> dict[str, Callable[[], object]]:
    strategy, raw = _strategy(kind), SAMPLES[kind]
    parse = msgspec.json.Decoder().decode
    decoded = decode_and_default(strategy, parse(raw))[0]

    def decode_with_defaults() -> Any:
        return decode_and_default(strategy, parse(raw))

    def decode() -> Any:
        return strategy.decode(parse(raw))

    return {
        "parse": lambda: parse(raw),
        "parse, decode": decode,
        "parse, decode, metadata and defaults": decode_with_defaults,
        "validate": lambda: list(strategy.check(decoded)),
    }


def main() -> None:
    parts, verdicts = [], []
    for kind, target in TARGETS.items():
        steps = _steps(kind)
        metrics = measure_rounds({name: partial(microseconds, run) for name, run in steps.items()})
        cost = metrics["parse, decode"].median - metrics["parse"].median
        parts.append(table(f"{kind} of {len(SAMPLES[kind])} bytes", "us", metrics, "parse"))
        verdicts.append(verdict(f"a {kind} decoded in less than {target:.0f} us: {cost:.1f}", cost < target))
    save_result("builtins", "CPU time, median of 15 shuffled rounds.\n\n" + "\n".join([*parts, *verdicts]) + "\n")


if __name__ == "__main__":
    main()
