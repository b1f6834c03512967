"""The taint eviction controller: pods that do not tolerate the NoExecute taints of their node are deleted.

    manager.add(taint_eviction_controller())

`tolerations` decides how long a pod may stay, `reconciler` waits and deletes.
"""

from konverge_cluster.taint_eviction.reconciler import taint_eviction_controller

__all__ = ["taint_eviction_controller"]
