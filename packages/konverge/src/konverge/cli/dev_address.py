"""The address of the operator of a running `konverge dev`: an extension of the kubeconfig that it writes.

The kubeconfig is removed when `konverge dev` ends, so the address needs no file of its own.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["DEV_KUBECONFIG", "read_dev_address", "write_dev_address"]

DEV_KUBECONFIG = "konverge.kubeconfig"
_EXTENSION = "konverge.dev/operator"


def write_dev_address(kubeconfig: Path, address: str) -> None:
    """Add the address of an operator to a kubeconfig with one cluster."""
    import yaml

    document = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    extension = {"name": _EXTENSION, "extension": {"address": address}}
    document["clusters"][0]["cluster"]["extensions"] = [extension]
    kubeconfig.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def read_dev_address(kubeconfig: Path) -> str:
    """Return the address of the operator in a kubeconfig; "" when there is none, or no such file."""
    import yaml

    try:
        clusters = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"]
        extensions = [one for cluster in clusters for one in cluster["cluster"].get("extensions") or ()]
        return next((str(one["extension"]["address"]) for one in extensions if one["name"] == _EXTENSION), "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        return ""
