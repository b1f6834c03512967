"""What the members may do in their namespace: what Patroni asks of the API server, no more."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["MAX_MEMBERS", "rules"]

MAX_MEMBERS: Final = 9

_CONFIG_MAPS: Final = ("config", "failover", "leader", "sync")


def rules(name: str) -> list[dict[str, Any]]:
    """Return the rules of the Role for the members of a cluster.

    They write only their own ConfigMaps and pods. Listing cannot be limited by name, and neither can creation.
    """
    config_maps = [f"{name}-{one}" for one in _CONFIG_MAPS]
    pods = [f"{name}-{number}" for number in range(MAX_MEMBERS)]
    return [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "watch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": config_maps, "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": pods, "verbs": ["patch"]},
    ]
