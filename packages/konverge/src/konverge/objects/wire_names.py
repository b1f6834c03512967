"""Attribute names and wire names: `cluster_ip` in Python is `clusterIP` in JSON.

Rules:

1. `wire_name` is camel case, except for the names in the table: Kubernetes writes some words in capitals (`podCIDRs`),
   without a rule.
2. A trailing underscore is not part of the wire name: `from_` is `from`.
3. `attribute_name` turns any wire name into a valid attribute; if rule 1 does not lead back to the wire name, the field
   of the class sets it.
4. The keys of maps (labels, annotations, data) are not translated.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

__all__ = ["CAPITAL_NAMES", "attribute_name", "wire_name"]

CAPITAL_NAMES: Final[dict[str, str]] = {
    "azure_disk_uri": "azureDiskURI",
    "bind_dn": "bindDN",
    "boot_id": "bootID",
    "cache_id": "cacheID",
    "cluster_ip": "clusterIP",
    "cluster_ips": "clusterIPs",
    "container_id": "containerID",
    "disk_uri": "diskURI",
    "endpoint_uri": "endpointURI",
    "external_id": "externalID",
    "external_ips": "externalIPs",
    "external_url": "externalURL",
    "host_ip": "hostIP",
    "host_ipc": "hostIPC",
    "host_ips": "hostIPs",
    "host_pid": "hostPID",
    "image_id": "imageID",
    "load_balancer_ip": "loadBalancerIP",
    "machine_id": "machineID",
    "non_resource_urls": "nonResourceURLs",
    "pd_id": "pdID",
    "pod_cidr": "podCIDR",
    "pod_cidrs": "podCIDRs",
    "pod_ip": "podIP",
    "pod_ips": "podIPs",
    "provider_id": "providerID",
    "system_uuid": "systemUUID",
    "target_wwns": "targetWWNs",
    "volume_id": "volumeID",
}
"""Attributes whose wire name has a word in capitals. Generated kinds set the rarer ones on the field."""

_WORD_STARTS = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])"  # podName: before a capital
    r"|(?<=[A-Z])(?=[A-Z](?:[a-rt-z]|s[a-z]))"  # IPBlock: before the last capital of a run, not in IPs
)


def wire_name(attribute: str) -> str:
    """Return the wire name of a Python attribute."""
    bare = attribute.rstrip("_")
    special = CAPITAL_NAMES.get(bare)
    if special is not None:
        return special
    first, *others = bare.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def attribute_name(wire: str) -> str:
    """Return a valid Python attribute for a wire name."""
    words = _WORD_STARTS.sub("_", re.sub(r"[^A-Za-z0-9]+", "_", wire))
    name = re.sub(r"_+", "_", words).strip("_").lower()
    if not name or name[0].isdigit():
        name = f"field_{name}" if name else "field"
    return f"{name}_" if keyword.iskeyword(name) else name
