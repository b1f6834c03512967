"""Where the pods of a database run: members and Jobs alike, since some Jobs need the claim of a member."""

from __future__ import annotations

from konverge.objects import to_wire
from konverge_operators.database.api import Database
from konverge_operators.manifests import Json

__all__ = ["scheduling_of"]


def scheduling_of(database: Database) -> Json:
    """Return the fields of a pod that say on which nodes it may run."""
    scheduling = database.spec.scheduling
    found: Json = {}
    if scheduling.node_selector:
        found["nodeSelector"] = dict(scheduling.node_selector)
    if scheduling.tolerations:
        found["tolerations"] = [to_wire(one) for one in scheduling.tolerations]
    if scheduling.priority_class_name is not None:
        found["priorityClassName"] = scheduling.priority_class_name
    return found
