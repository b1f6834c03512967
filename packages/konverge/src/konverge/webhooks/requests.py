"""The request that the function of an admission webhook gets, and the way to deny it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from konverge.objects import Key

__all__ = ["AdmissionRequest", "Deny", "Operation", "User"]

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass(frozen=True, slots=True)
class User:
    """The user who made the request, as authenticated by the API server."""

    name: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One write that waits for admission.

    `name` is "" while a generated name is not known yet. `version` is the version of the client's request; the function
    gets the object in the version of its class. `options` are the options of the write as plain JSON. With `dry_run`
    nothing is stored: the function must not have side effects.
    """

    operation: Operation = "CREATE"
    uid: str = ""
    name: str = ""
    namespace: str = ""
    user: User = field(default_factory=User)
    dry_run: bool = False
    version: str = ""
    subresource: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    def warn(self, text: str) -> None:
        """Send a warning to the client, whether the write is allowed or not; kubectl prints it."""
        self.warnings.append(text)


class Deny(Exception):
    """A denial: returned, yielded or raised by the function of a webhook.

    `message` is sent to the client, with `path`, the wire path of the invalid field. `code` is the HTTP status code of
    the denial: 422 when there is a path, else 403.

    Raises: ValueError for a code that is not an error, or a path that does not start with a dot.
    """

    def __init__(self, message: str, *, path: str = "", code: int = 0) -> None:
        if not isinstance(message, str) or not message:
            raise ValueError(f"Deny needs a message for the client, got {message!r:.100}")
        if path and not path.startswith("."):
            raise ValueError(f"{path!r} is not a wire path: write '.spec.image'")
        if code and not 400 <= code <= 599:
            raise ValueError(f"the code of a denial is from 400 to 599, got {code!r}")
        super().__init__(f"{message}, at {path}" if path else message)
        self.message = message
        self.path = path
        self.code = code or (422 if path else 403)

    @property
    def reason(self) -> str:
        """The Status reason for the code; "" when there is none."""
        return _REASONS.get(self.code, "")
