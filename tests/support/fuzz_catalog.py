"""All kinds that the differential fuzzer writes."""

from __future__ import annotations

from fuzz_kinds import CONFIG_MAP, DEPLOYMENT, SERVICE, WIDGET, FuzzKind
from fuzz_workloads import JOB, POD, SECRET, STATEFUL_SET

__all__ = ["KINDS"]

KINDS: dict[str, FuzzKind] = {
    each.name: each for each in (CONFIG_MAP, DEPLOYMENT, SERVICE, WIDGET, SECRET, POD, JOB, STATEFUL_SET)
}
