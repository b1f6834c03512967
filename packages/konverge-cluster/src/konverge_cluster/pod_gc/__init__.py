"""The pod garbage collector: deletes pods that no kubelet will ever remove, and old finished ones.

manager.add(pod_gc_controller())
"""

from konverge_cluster.pod_gc.reconciler import pod_gc_controller

__all__ = ["pod_gc_controller"]
