"""What the members may do in their namespace: keep the record, list the pods, and report in their own."""

from __future__ import annotations

from konverge_operators.database.api import MAX_REPLICAS
from konverge_operators.database.mariadb.member.api_server import record_name
from konverge_operators.manifests import Json

__all__ = ["rules"]


def rules(name: str) -> list[Json]:
    """Return the rules of the Role for the members of a cluster. Neither listing nor creation is limited by name."""
    pods = [f"{name}-{number}" for number in range(MAX_REPLICAS)]
    record = [record_name(name)]
    return [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": record, "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": pods, "verbs": ["patch"]},
    ]
