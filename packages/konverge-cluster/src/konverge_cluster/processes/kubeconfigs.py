"""The kubeconfig of a container without a mount namespace, where clients do not find the files of its account."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from konverge_cluster.processes.supervisors import Mount

if TYPE_CHECKING:
    from konverge.certificates import KeyPair

__all__ = ["SERVICE_ACCOUNT", "SignClient", "sign_account", "write_kubeconfig"]

SignClient: TypeAlias = "Callable[[str, Sequence[str]], KeyPair]"
"""Returns a client certificate for the name and the groups of a user."""

SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_NAME: Final = "konverge"


def sign_account(sign: SignClient | None, namespace: str, account: str) -> KeyPair | None:
    """Return a certificate with the name and the groups of a service account; None when nobody signs."""
    if sign is None:
        return None
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return sign(f"system:serviceaccount:{namespace}:{account}", groups)


def write_kubeconfig(path: Path, mounts: Sequence[Mount], server: tuple[str, int], pair: KeyPair | None) -> bool:
    """Write a kubeconfig for a mounted service account; report whether there is one.

    Without a certificate it has the token.
    """
    sources = [one.source for one in mounts if one.target == SERVICE_ACCOUNT]
    if not sources:
        return False
    host, port = server
    cluster = {"server": f"https://{host}:{port}", "certificate-authority": f"{sources[0]}/ca.crt"}
    context = {"cluster": _NAME, "user": _NAME, "namespace": (Path(sources[0]) / "namespace").read_text()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": _user_with_token(sources[0]) if pair is None else _user(pair)}],
        "contexts": [{"name": _NAME, "context": context}],
        "current-context": _NAME,
    }
    path.write_text(json.dumps(config))  # JSON is YAML too
    path.chmod(0o644)
    return True


def _user(pair: KeyPair) -> dict[str, str]:
    return {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }


def _user_with_token(source: str) -> dict[str, str]:
    # Clients that know `tokenFile` prefer it and read renewed tokens; Patroni's reads `token` only.
    return {"tokenFile": f"{source}/token", "token": (Path(source) / "token").read_text()}
