"""Custom resource definitions: their own rules, and the resources that they define.

`CustomResources(cluster)` is all that a cluster needs: it serves the definitions and the resources that they define.
"""

from __future__ import annotations

from konverge_cluster.crds.serving import CustomResources

__all__ = ["CustomResources"]
