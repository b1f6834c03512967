"""Random documents of built-in kinds: every field has the right type and an arbitrary value.

They are generated from the same table of Go structs that the embedded server uses, so every field is covered.
"""

from __future__ import annotations

import random
from typing import Any

from konverge_cluster.builtins.data import load

_TEXTS = (
    *("", "a", "x.y", "A_b", "1", "a/b", "True", "10Mi", "0", "None", "Always", "In", "kubernetes.io/tls"),
    *(
        "10.96.0.9",
        "010.1.1.1",
        "::1",
        "10.0.0.0/8",
        "10.0.0.1/08",
        "50%",
        "200%",
        "\u00b2%",
        "\u0663",
        "-1",
        "e30=",
        "[]",
        "/",
    ),
    *(
        "https://a.b/c?d",
        "https://[",
        "* * * * *",
        "@every \u00b2h",
        "CRON_TZ=x * * * * *",
        "UTC",
        "Linux",
        "\u0000",
        "\U0001f600",
    ),
)
_NUMBERS = (0, 1, -1, 5, 80, 70000, 3600)
_AMOUNTS: tuple[Any, ...] = ("1", "500m", "1Gi", "0", "1024Mi", 2, "1.5", "-1", "0.0001")
_KEYS = ("a", "b.c/d", "cpu", "memory", "storage", "hugepages-2Mi", "x y")
_SPECIAL: dict[str, tuple[Any, ...]] = {
    "v1.Time": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+02:00"),
    "v1.MicroTime": ("2026-01-01T00:00:00.123456Z",),
    "resource.Quantity": _AMOUNTS,
    "intstr.IntOrString": (0, 1, "25%", "a", 80, "200%"),
}
_MAX_DEPTH = 5


class Documents:
    """Generator of documents; the same seed produces the same documents."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._table = load("structs")

    def kinds(self) -> list[str]:
        """Return the names of all kinds, such as `apps/v1/Deployment`."""
        return [name for name in self._table["kinds"] if name != "ObjectMeta"]

    def make(self, kind: str) -> dict[str, Any]:
        """Return an object of a kind, with a valid name."""
        document: dict[str, Any] = self._value(self._table["kinds"][kind], 0) or {}
        document |= {"metadata": {"name": "x", "labels": {"a": "b"}}}
        document.pop("kind", None)
        document.pop("apiVersion", None)
        return document

    def _value(self, index: int, depth: int) -> Any:
        type_ = self._table["types"][index]
        kind = type_["kind"]
        if kind == "pointer":
            return self._value(type_["element"], depth)
        if depth and self._rng.random() < 0.03:
            return None
        if kind in ("struct", "list", "map"):
            return getattr(self, f"_{kind}")(type_, depth)
        return self._rng.choice(_choices(kind, type_["name"]))

    def _struct(self, type_: Any, depth: int) -> dict[str, Any]:
        fields = [each for each in type_.get("fields", ()) if depth < _MAX_DEPTH or not each.get("omitEmpty")]
        share = (0.6 if depth < 2 else 0.25) if depth < _MAX_DEPTH else 0.9
        return {
            field["key"]: self._value(field["type"], depth + 1)
            for field in fields
            if self._rng.random() < (share if field.get("omitEmpty") else 0.85)
        }

    def _list(self, type_: Any, depth: int) -> list[Any]:
        count = self._rng.choice((0, 1, 1, 2)) if depth <= _MAX_DEPTH + 1 else 0
        return [self._value(type_["element"], depth + 1) for _ in range(count)]

    def _map(self, type_: Any, depth: int) -> dict[str, Any]:
        names = self._rng.sample(_KEYS, self._rng.choice((0, 1, 1, 2)))
        return {name: self._value(type_["element"], depth + 1) for name in names}


def _choices(kind: str, name: str) -> tuple[Any, ...]:
    plain: dict[str, tuple[Any, ...]] = {
        "string": _TEXTS,
        "bool": (True, False),
        "bytes": ("", "AAA=", "YQ=="),
        "float64": (0, 1.5),
        "special": _SPECIAL.get(name, ({"a": 1},)),
    }
    return plain.get(kind, _NUMBERS)
