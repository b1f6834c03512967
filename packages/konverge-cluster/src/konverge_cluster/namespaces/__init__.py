"""Namespaces: their defaults, and the deletion of their content.

    manager.add(*namespace_controllers(root_ca=lambda: certificate))

An active namespace has the service account `default` and the config map `kube-root-ca.crt`. A terminating namespace
loses its content, pods first, and then its finalizer.
"""

from konverge_cluster.namespaces.reconciler import namespace_controllers

__all__ = ["namespace_controllers"]
