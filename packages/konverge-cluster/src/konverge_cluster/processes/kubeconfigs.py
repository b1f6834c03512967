"""The kubeconfig of a container without a mount namespace, where clients do not find the files of its account."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from konverge_cluster.processes.supervisors import Mount

__all__ = ["SERVICE_ACCOUNT", "write_kubeconfig"]

SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_NAME: Final = "konverge"


def write_kubeconfig(path: Path, mounts: Sequence[Mount], server: tuple[str, int]) -> bool:
    """Write a kubeconfig with the files of a mounted service account; report whether there is one."""
    sources = [one.source for one in mounts if one.target == SERVICE_ACCOUNT]
    if not sources:
        return False
    host, port = server
    cluster = {"server": f"https://{host}:{port}", "certificate-authority": f"{sources[0]}/ca.crt"}
    context = {"cluster": _NAME, "user": _NAME, "namespace": (Path(sources[0]) / "namespace").read_text()}
    # Clients that know `tokenFile` prefer it and read renewed tokens; Patroni's reads `token` only.
    user = {"tokenFile": f"{sources[0]}/token", "token": (Path(sources[0]) / "token").read_text()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": context}],
        "current-context": _NAME,
    }
    path.write_text(json.dumps(config))  # JSON is YAML too
    path.chmod(0o644)
    return True
