"""Authorization of the embedded API server: RBAC over the roles and bindings in storage, and access reviews."""

from konverge_cluster.authorization.rbac import RbacAuthorizer
from konverge_cluster.authorization.reviews import serve_reviews
from konverge_cluster.authorization.startup import enable_rbac

__all__ = ["RbacAuthorizer", "enable_rbac", "serve_reviews"]
