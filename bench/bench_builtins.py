"""What a built-in object costs the embedded control plane: bringing it into shape, its defaults, judging it.

Run by `make bench-builtins`. Shaping works in place, so each figure is without the copy that each round needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from measuring import in_rounds, keep, microseconds, table, verdict
from sample_pod import pod_bytes

from konverge_cluster.api.documents import decode_and_default
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.registration import builtin_strategies

TARGETS = {"ConfigMap": 15.0, "Pod": 150.0}
"""So many microseconds may bringing one into shape take."""

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
    found = next(each for each in builtin_strategies() if each.info.kind.kind == kind)
    assert isinstance(found, BuiltinStrategy)
    return found


def _steps(kind: str) -> dict[str, Callable[[], object]]:
    strategy, raw = _strategy(kind), SAMPLES[kind]
    read = msgspec.json.Decoder().decode
    ready = decode_and_default(strategy, read(raw))[0]

    def whole() -> Any:
        return decode_and_default(strategy, read(raw))

    def shaped() -> Any:
        return strategy.decode(read(raw))

    return {
        "read the JSON": lambda: read(raw),
        "read, into shape": shaped,
        "read, into shape, metadata and defaults": whole,
        "validate": lambda: list(strategy.check(ready)),
    }


def main() -> None:
    parts, verdicts = [], []
    for kind, target in TARGETS.items():
        steps = _steps(kind)
        figures = in_rounds({name: partial(microseconds, run) for name, run in steps.items()})
        cost = figures["read, into shape"].median - figures["read the JSON"].median
        parts.append(table(f"{kind} of {len(SAMPLES[kind])} bytes", "us", figures, "read the JSON"))
        verdicts.append(verdict(f"a {kind} into shape in less than {target:.0f} us: {cost:.1f}", cost < target))
    keep("builtins", "CPU time, median of 15 shuffled rounds.\n\n" + "\n".join([*parts, *verdicts]) + "\n")


if __name__ == "__main__":
    main()
