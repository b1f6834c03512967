"""PodSecurity admission: the Pod Security Standards, as the labels of each namespace request them.

`PodSecurity` is the plug-in of the admission chain. `policies` reads the labels, `baseline` and `restricted` have the
checks of the two levels, `evaluation` selects the checks that a version of a level consists of. The texts are those of
the real server.
"""

from __future__ import annotations

from konverge_cluster.pod_security.admission import PodSecurity

__all__ = ["PodSecurity"]
