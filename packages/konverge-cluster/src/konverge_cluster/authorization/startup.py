"""RBAC of a cluster: the default roles, the authorizer and the escalation checks."""

from __future__ import annotations

from konverge_cluster.api.cluster import Cluster
from konverge_cluster.authorization.default_roles import create_default_roles
from konverge_cluster.authorization.escalation import EscalationCheck
from konverge_cluster.authorization.rbac import RbacAuthorizer

__all__ = ["enable_rbac"]


def enable_rbac(cluster: Cluster) -> None:
    """Enforce RBAC from now on. The check of escalations comes last in admission, so add other plug-ins before."""
    create_default_roles(cluster)
    authorizer = RbacAuthorizer(cluster.storage)
    cluster.authorizer = authorizer
    cluster.admission.append(EscalationCheck(authorizer))
