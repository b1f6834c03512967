"""Every exception that konverge raises on purpose, as one tree.

    KonvergeError
      ApiError            the server answered no: .status .reason .verb .kind .key
        NotFound          404, the object or the collection is not there
        AlreadyExists     409 with reason AlreadyExists
        Conflict          409, somebody else wrote first
          ApplyConflict   409 of a server-side apply: .conflicts names owner and path
        Invalid           422 or 400, the server refuses what was sent: .causes names the paths
        Forbidden         403, RBAC or admission: .needs
        Unauthorized      401, the credentials are not (or no longer) accepted
        Expired           410, the version asked for is compacted: list again
        TooManyRequests   429: .retry_after
        ServerError       5xx: .retry_after
      TransportError      no answer: refused, cut, timed out, TLS: .sent
      DecodeError         an answer that could not be read: .path
      ConfigError         no usable kubeconfig or service account
      NotSynced           asked a cache that has not finished its first list: .reasons
      WriteRefused        the write guard said no: nothing was sent
      UnknownKind         the server does not serve this kind
      TerminalError            raised by a reconciler: retrying will not help
      OwnedByAnother      an object to be applied as a child has another controller
      LeaseLost           this process led and does not any more: it must end
      QueueClosed         a work queue hands out nothing any more
      WaitTimeout         what was waited for did not come true in time (also a TimeoutError)
      ControlPlaneError   the control plane for tests could not be found, built or started

There is one class for each thing that a caller does differently. Causes are chained; nothing of the HTTP or JSON
library leaks. Misuse is not here: it is a TypeError or ValueError at the place of the mistake.

The shape of a message is ``<verb> <Kind> <ns>/<name>: <what>, at <wire path> (<what to do>)``. Secrets never appear.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AlreadyExists",
    "ApiError",
    "ApplyConflict",
    "Cause",
    "ConfigError",
    "Conflict",
    "ControlPlaneError",
    "DecodeError",
    "Expired",
    "FieldConflict",
    "Forbidden",
    "Invalid",
    "KonvergeError",
    "LeaseLost",
    "NotFound",
    "NotSynced",
    "OwnedByAnother",
    "QueueClosed",
    "ServerError",
    "TerminalError",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "UnknownKind",
    "WaitTimeout",
    "WriteRefused",
]


class KonvergeError(Exception):
    """The root of the tree: `except KonvergeError` catches all that konverge raises on purpose."""


@dataclass(frozen=True)
class Cause:
    """One reason of a refusal, as the server lists them: which field, why, in which words."""

    field: str
    reason: str
    message: str


@dataclass(frozen=True)
class FieldConflict:
    """One field that another manager owns: the manager's name and the wire path."""

    manager: str
    path: str


class ApiError(KonvergeError):
    """The server answered, and the answer is no.

    `status` is the HTTP code, `reason` the server's one-word reason ("" when it gave none). `verb`, `kind` and `key`
    say what was asked, in the words of the caller, and stand at the front of the message.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        verb: str = "",
        kind: str = "",
        key: str = "",
        causes: tuple[Cause, ...] = (),
    ) -> None:
        asked = " ".join(part for part in (verb, kind, key) if part)
        super().__init__(f"{asked}: {message}" if asked else message)
        self.status = status
        self.reason = reason
        self.verb = verb
        self.kind = kind
        self.key = key
        self.causes = causes


class NotFound(ApiError):
    """The object, or the whole collection, is not there."""


class AlreadyExists(ApiError):
    """An object of that name is there already."""


class Conflict(ApiError):
    """Somebody else wrote first: read again and decide again."""


class ApplyConflict(Conflict):
    """A server-side apply touched fields that other managers own; `conflicts` names each owner and path."""

    conflicts: tuple[FieldConflict, ...] = ()


class Invalid(ApiError):
    """The server refuses what was sent; `causes` names the wire paths when it said them."""


class Forbidden(ApiError):
    """The caller may not do this (RBAC), or admission denied it.

    `needs` is the permission that is missing, "list on deployments.apps", when the server said which.
    """

    needs: str = ""


class Unauthorized(ApiError):
    """The server does not accept the credentials, or no longer."""


class Expired(ApiError):
    """The version asked for is compacted: list again."""


class TooManyRequests(ApiError):
    """The server asks to slow down; `retry_after` is its wish in seconds, if it said one."""

    retry_after: float | None = None


class ServerError(ApiError):
    """The server failed; `retry_after` is its wish in seconds, if it said one."""

    retry_after: float | None = None


class TransportError(KonvergeError):
    """No answer came: refused, cut, timed out, or TLS failed.

    `sent` is False when the request certainly never left this machine, so that repeating it is safe for any verb.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class DecodeError(KonvergeError):
    """Something could not be read as what it should be; `path` is the wire path ("" when unknown)."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ConfigError(KonvergeError):
    """No usable kubeconfig or service account; the message names the file and the field."""


class NotSynced(KonvergeError):
    """A cache has not finished its first list; `reasons` says for each kind what it waits for."""

    def __init__(self, message: str, *, reasons: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.reasons = reasons or {}


class WriteRefused(KonvergeError):
    """The write guard said no right before a mutating request would have left; nothing was sent."""


class TerminalError(KonvergeError):
    """Retrying will not help: only a change of the object, or of what it depends on, is reason for another try."""


class OwnedByAnother(KonvergeError):
    """An object that was to become a child has another object as its controller: two of them would fight for it."""


class LeaseLost(KonvergeError):
    """This process led and does not any more; another may by now. It ends, and whoever runs it starts it anew."""


class QueueClosed(KonvergeError):
    """The work queue is closed: it hands out nothing any more."""


class UnknownKind(KonvergeError):
    """The server does not serve this kind, also not after asking it again."""


class WaitTimeout(KonvergeError, TimeoutError):
    """What was waited for did not come true in time; the message says what was seen last."""


class ControlPlaneError(KonvergeError):
    """The control plane for tests could not be found, built or started; the message ends with the end of its log."""
