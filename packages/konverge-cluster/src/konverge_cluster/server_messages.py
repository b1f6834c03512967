"""Messages of the API server without the client's prefix, for conditions and events."""

from __future__ import annotations

from konverge.errors import ApiError, KonvergeError

__all__ = ["is_namespace_terminating", "server_message"]


def server_message(error: KonvergeError) -> str:
    """Return the message of an error as the server sent it."""
    if not isinstance(error, ApiError):
        return str(error)
    prefix = " ".join(part for part in (error.verb, error.kind, error.key) if part)
    return str(error).removeprefix(f"{prefix}: ")


def is_namespace_terminating(error: KonvergeError) -> bool:
    """Report whether a create failed because its namespace is being deleted; then every other create fails, too."""
    return isinstance(error, ApiError) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)
