"""What the server said, without the words that the client puts before it: conditions and events repeat it."""

from __future__ import annotations

from konverge.errors import ApiError, KonvergeError

__all__ = ["is_namespace_terminating", "server_message"]


def server_message(error: KonvergeError) -> str:
    """Give the message of a server_message as the server worded it."""
    if not isinstance(error, ApiError):
        return str(error)
    asked = " ".join(part for part in (error.verb, error.kind, error.key) if part)
    return str(error).removeprefix(f"{asked}: ")


def is_namespace_terminating(error: KonvergeError) -> bool:
    """Tell whether a create was refused because its namespace is being deleted: then every other will be, too."""
    return isinstance(error, ApiError) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)
