"""How a patch fails: one exception, with all that the API layer needs to make the Status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["PatchError", "apply_conflict", "bad_request", "internal", "invalid_patch", "too_large"]


class PatchError(Exception):
    """A patch that cannot be applied, in the words of the real server.

    `code` is the HTTP code, `reason` the Status reason ("" where the real server gives none), `details` the Status
    details (None where the real server sends no such key, `{}` where it sends an empty one).
    """

    def __init__(self, message: str, *, code: int, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.details = details


def bad_request(message: str) -> PatchError:
    """Say that the patch itself is no patch: 400."""
    return PatchError(message, code=400, reason="BadRequest")


def invalid_patch() -> PatchError:
    """Say that the patch does not fit the object: 422, without a word on what does not fit, as the real server."""
    text = "the server rejected our request due to an error in our request"
    return PatchError(text, code=422, reason="Invalid", details={})


def internal(message: str) -> PatchError:
    """Say what the real server has no code for: 500 without a reason."""
    return PatchError(message, code=500)


def too_large(message: str) -> PatchError:
    """Say that a limit is passed: 413."""
    return PatchError(f"Request entity too large: {message}", code=413, reason="RequestEntityTooLarge")


def apply_conflict(message: str, causes: Iterable[tuple[str, str]]) -> PatchError:
    """Say which fields other managers own: 409, a cause (message, field) each."""
    listed = [{"reason": "FieldManagerConflict", "message": text, "field": path} for text, path in causes]
    return PatchError(message, code=409, reason="Conflict", details={"causes": listed})
