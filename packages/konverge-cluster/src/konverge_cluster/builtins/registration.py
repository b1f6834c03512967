"""Registration of all built-in resources, in the order of the real server's discovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from konverge.objects.kinds import Kind, Scope
from konverge_cluster.api.registry import Registry
from konverge_cluster.api.strategy import ResourceInfo, SubresourceInfo
from konverge_cluster.api.tables import Column
from konverge_cluster.builtins.addresses import ServiceIPAllocator
from konverge_cluster.builtins.data import load
from konverge_cluster.builtins.strategies import STRATEGIES
from konverge_cluster.builtins.strategies.networking import (
    EndpointSliceStrategy,
    EndpointsStrategy,
    LoopbackEndpointSliceStrategy,
    LoopbackEndpointsStrategy,
)
from konverge_cluster.builtins.strategies.services import ServiceStrategy
from konverge_cluster.builtins.strategies.workloads import MaxUnavailableStatefulSetStrategy, StatefulSetStrategy
from konverge_cluster.builtins.strategy import BuiltinStrategy

__all__ = ["accept_loopback_endpoints", "builtin_strategies", "register_builtins"]

_DEPRECATIONS: Final = {
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


_GATES: Final[Mapping[str, tuple[type[BuiltinStrategy], type[BuiltinStrategy]]]] = {
    "MaxUnavailableStatefulSet": (StatefulSetStrategy, MaxUnavailableStatefulSetStrategy)
}
"""The feature gates that can be enabled: which strategy each replaces, and by which."""


_LOOPBACK: Final[Mapping[type[BuiltinStrategy], type[BuiltinStrategy]]] = {
    EndpointsStrategy: LoopbackEndpointsStrategy,
    EndpointSliceStrategy: LoopbackEndpointSliceStrategy,
}


def register_builtins(registry: Registry, addresses: ServiceIPAllocator, *, feature_gates: Iterable[str] = ()) -> None:
    """Register every built-in resource. Services get their addresses from `addresses`.

    Raises: ValueError for a feature gate that is not known.
    """
    replaced = dict(map(_gate, feature_gates))
    for strategy in builtin_strategies(addresses):
        gated = replaced.get(type(strategy))
        registry.add(gated(strategy.info, strategy.columns) if gated is not None else strategy)


def accept_loopback_endpoints(registry: Registry) -> None:
    """Let endpoints have loopback addresses, which the real server refuses."""
    for strategy in registry:
        if isinstance(strategy, BuiltinStrategy) and type(strategy) in _LOOPBACK:
            accepting = _LOOPBACK[type(strategy)](strategy.info, strategy.columns)
            accepting.deprecation = strategy.deprecation
            registry.add(accepting)


def _gate(name: str) -> tuple[type[BuiltinStrategy], type[BuiltinStrategy]]:
    if name not in _GATES:
        raise ValueError(f"unknown feature gate {name!r} (known: {', '.join(_GATES)})")
    return _GATES[name]


def builtin_strategies(addresses: ServiceIPAllocator | None = None) -> list[BuiltinStrategy]:
    """Return one strategy for each built-in resource and version. Without `addresses`, services get no addresses."""
    return [_strategy(each, addresses) for each in _discovery()]


@cache
def _discovery() -> Any:
    return load("discovery")


def _strategy(resource: Any, addresses: ServiceIPAllocator | None) -> BuiltinStrategy:
    info = _info(resource)
    columns = tuple(_column(each) for each in resource.get("columns", ()))
    strategy_class = STRATEGIES.get((info.kind.group, info.kind.version, info.kind.plural), BuiltinStrategy)
    if issubclass(strategy_class, ServiceStrategy):
        strategy: BuiltinStrategy = strategy_class(info, columns, addresses)
    else:
        strategy = strategy_class(info, columns)
    strategy.deprecation = _DEPRECATIONS.get(info.kind.resource, "")
    return strategy


def _info(resource: Any) -> ResourceInfo:
    group, version, plural = resource["group"], resource["version"], resource["resource"]
    kind = Kind(group, version, resource["responseKind"]["kind"], plural, Scope(resource["scope"]))
    # Both event groups share one collection.
    storage = ("", "events") if plural == "events" else (group, plural)
    return ResourceInfo(
        kind=kind,
        storage=storage,
        verbs=tuple(resource["verbs"]),
        singular=resource["singularResource"],
        list_kind=resource.get("listKind", ""),
        short_names=tuple(resource.get("shortNames", ())),
        categories=tuple(resource.get("categories", ())),
        subresources=tuple(_subresource(each) for each in resource.get("subresources", ())),
        storage_version_hash=resource.get("storageVersionHash", ""),
    )


def _subresource(subresource: Any) -> SubresourceInfo:
    response = subresource["responseKind"]
    return SubresourceInfo(
        name=subresource["subresource"],
        kind=response["kind"],
        verbs=tuple(subresource["verbs"]),
        group=response.get("group", ""),
        version=response.get("version", ""),
    )


def _column(column: Any) -> Column:
    return Column(
        name=column["name"],
        type=column["type"],
        description=column["description"],
        format=column["format"],
        priority=column["priority"],
    )
