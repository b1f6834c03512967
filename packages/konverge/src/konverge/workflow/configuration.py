"""Configuration: referenced ConfigMaps and Secrets whose content is a hash on the pod template.

A change of the content changes the hash, and the new template rolls the pods once. The content itself is in no
annotation, and Secrets are not kept in memory: they are watched by metadata and read when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Generic, TypeVar

import msgspec

from konverge.cache import CacheOptions, by_function
from konverge.controller import Builder
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.objects import Resource
from konverge.reconcile import Context
from konverge.triggers import to_referring

__all__ = ["CONFIGURATION_HASH", "Configuration"]

T = TypeVar("T", bound=Resource)

CONFIGURATION_HASH = "konverge.dev/configuration-hash"
"""The annotation of a pod template with the hash of the configuration."""

_encode = msgspec.json.Encoder(order="deterministic").encode


def _none(_obj: Any) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class Configuration(Generic[T]):
    """The ConfigMaps and Secrets that an object refers to, by name, in its own namespace."""

    config_maps: Callable[[T], Iterable[str]] = _none
    secrets: Callable[[T], Iterable[str]] = _none

    async def annotations(self, obj: T, ctx: Context) -> dict[str, str]:
        """Return the annotation for the pod template; {} if the object refers to nothing.

        An object that does not exist counts as empty: its creation changes the hash.
        """
        content: list[Any] = []
        for name in sorted(set(self.config_maps(obj))):
            config_map = await ctx.get(ConfigMap, name)
            content.append([name, config_map.data, config_map.binary_data] if config_map is not None else [name])
        for name in sorted(set(self.secrets(obj))):
            secret = await ctx.get(Secret, name)
            content.append([name, secret.data] if secret is not None else [name])
        return {CONFIGURATION_HASH: sha256(_encode(content)).hexdigest()[:16]} if content else {}

    def declare(self, builder: Builder[T], kind: type[T]) -> Builder[T]:
        """Add the indexes, watches and permissions that `annotations` needs."""
        references: tuple[tuple[type[Resource], str, Any], ...] = (
            (ConfigMap, "configuration-config-maps", self.config_maps),
            (Secret, "configuration-secrets", self.secrets),
        )
        for referenced, index, names in references:
            if names is not _none:
                options = CacheOptions(metadata_only=True)
                builder.index(kind, index, by_function(kind, names))
                builder.watches(referenced, to_referring(kind, index=index), options=options).needs(referenced, "get")
        return builder
