"""Snapshots leave out what differs from run to run."""

from __future__ import annotations

from konverge_cluster.storage import Storage
from konverge_cluster.testing.simulation.audits import Audit
from konverge_cluster.testing.simulation.snapshots import normalize


def test_the_order_of_conditions_is_left_out_and_that_of_other_lists_is_not() -> None:
    available, progressing = {"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}
    audit = Audit(Storage())

    def normal(*items: object) -> tuple[object, object]:
        return normalize({"conditions": list(items)}, audit), normalize({"items": list(items)}, audit)

    (one, one_list), (other, other_list) = normal(available, progressing), normal(progressing, available)
    assert one == other
    assert one_list != other_list
    assert normal({**available, "status": "False"}, progressing)[0] != one
