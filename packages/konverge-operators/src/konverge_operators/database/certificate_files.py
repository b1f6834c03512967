"""The certificate of the members as files in their containers, for all engines."""

from __future__ import annotations

from typing import Final

from konverge_operators.manifests import Json

__all__ = ["NOT_YET", "TLS_DIRECTORY", "reload_script", "tls_mounts", "tls_volumes"]

TLS_DIRECTORY: Final = "/etc/database-tls"
"""Where `tls.crt`, `tls.key` and the trusted authorities, `ca.crt`, are."""
NOT_YET: Final = 75
"""The exit code of `reload_script` while the kubelet has not updated the files."""


def tls_volumes(secret: str, *, tls: bool) -> list[Json]:
    """Return the volume with the certificate, if there is one. Only the user of the server reads the key."""
    items = [{"key": name, "path": name} for name in ("ca.crt", "tls.crt", "tls.key")]
    volume = {"name": "tls", "secret": {"secretName": secret, "defaultMode": 0o400, "items": items}}
    return [volume] if tls else []


def tls_mounts(*, tls: bool) -> list[Json]:
    """Return the mount of that volume, if there is one."""
    return [{"name": "tls", "mountPath": TLS_DIRECTORY, "readOnly": True}] if tls else []


def reload_script(digest: str, command: str) -> str:
    """Return the script that runs a command if the certificate has this SHA-256."""
    found = f"$(sha256sum {TLS_DIRECTORY}/tls.crt | cut -c1-64)"
    return f'test "{found}" = {digest} || exit {NOT_YET}; {command}'
