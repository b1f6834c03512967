"""Namespaces: what every one of them has, and how one goes with all that is in it.

    manager.add(*namespace_controllers(root_ca=lambda: certificate))

An active namespace has the service account `default` and the config map `kube-root-ca.crt`. One that is being deleted
is emptied, pods first, and then let go.
"""

from konverge_cluster.namespaces.reconciler import namespace_controllers

__all__ = ["namespace_controllers"]
