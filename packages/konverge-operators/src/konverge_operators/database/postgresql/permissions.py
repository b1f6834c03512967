"""What the members may do in their namespace: what Patroni asks of the API server, no more."""

from __future__ import annotations

from typing import Final

from konverge_operators.database.api import MAX_REPLICAS
from konverge_operators.manifests import Json

__all__ = ["CONFIG_MAPS", "rules"]

CONFIG_MAPS: Final = ("config", "failover", "leader", "sync")
"""The last part of the names of Patroni's ConfigMaps."""


def rules(name: str) -> list[Json]:
    """Return the rules of the Role for the members of a cluster.

    They write only their own ConfigMaps and pods. Listing cannot be limited by name, and neither can creation.
    """
    config_maps = [f"{name}-{one}" for one in CONFIG_MAPS]
    pods = [f"{name}-{number}" for number in range(MAX_REPLICAS)]
    return [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "watch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": config_maps, "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": pods, "verbs": ["patch"]},
    ]
