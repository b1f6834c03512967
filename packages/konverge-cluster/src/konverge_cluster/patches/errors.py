"""Errors of patches: one exception, with everything that the API layer needs for the Status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["PatchError", "apply_conflict", "bad_request", "internal", "invalid_patch", "too_large"]


class PatchError(Exception):
    """A patch that cannot be applied, with the text of the real server.

    `code` is the HTTP code, `reason` the Status reason ("" where the real server has none), `details` the Status
    details (None where the real server omits the key, `{}` where it is empty).
    """

    def __init__(self, message: str, *, code: int, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.details = details


def bad_request(message: str) -> PatchError:
    """Return the error for a body that is not a patch: 400."""
    return PatchError(message, code=400, reason="BadRequest")


def invalid_patch() -> PatchError:
    """Return the error for a patch that does not apply to the object: 422, without the cause, as the real server."""
    text = "the server rejected our request due to an error in our request"
    return PatchError(text, code=422, reason="Invalid", details={})


def internal(message: str) -> PatchError:
    """Return an error for which the real server has no code: 500 without a reason."""
    return PatchError(message, code=500)


def too_large(message: str) -> PatchError:
    """Return the error for an exceeded limit: 413."""
    return PatchError(f"Request entity too large: {message}", code=413, reason="RequestEntityTooLarge")


def apply_conflict(message: str, causes: Iterable[tuple[str, str]]) -> PatchError:
    """Return the error for fields that other managers own: 409, with a cause (message, field) for each."""
    listed = [{"reason": "FieldManagerConflict", "message": text, "field": path} for text, path in causes]
    return PatchError(message, code=409, reason="Conflict", details={"causes": listed})
