"""The exceptions that konverge raises, as one tree.

    KonvergeError
      ApiError            the server refused the request: .status .reason .verb .kind .key
        NotFound          404, the object or the collection does not exist
        AlreadyExists     409 with reason AlreadyExists
        Conflict          409, the object changed since it was read
          ApplyConflict   409 of a server-side apply: .conflicts names owner and path
        Invalid           422 or 400, the server rejects the content: .causes names the paths
        Forbidden         403, RBAC or admission: .needs
        Unauthorized      401, the credentials are not (or no longer) accepted
        Expired           410, the requested version is compacted: list again
        TooManyRequests   429: .retry_after
        ServerError       5xx: .retry_after
      TransportError      no response: refused, cut, timed out, TLS: .sent
      DecodeError         a response that cannot be decoded: .path
      ConfigError         no usable kubeconfig or service account
      NotSynced           read from a cache that has not finished its first list: .reasons
      WriteRefused        the write fence is closed: nothing was sent
      UnknownKind         the server does not serve this kind
      TerminalError       raised by a reconciler: retrying will not help
      Retry               raised by a reconciler: try again after a delay, one log line: .after
      AlreadyOwned        the object to apply as a child has another controller
      LeaseLost           this process lost leadership and must exit
      QueueClosed         the work queue is closed
      WaitTimeout         the condition was not met in time (also a TimeoutError)
      ControlPlaneError   the control plane for tests could not be found, built or started

There is one class for each error that a caller handles differently. Causes are chained. No exception of the HTTP or
JSON library gets out. Misuse is a TypeError or ValueError at the place of the mistake and has no class here.

The shape of a message is ``<verb> <Kind> <ns>/<name>: <what>, at <wire path> (<what to do>)``. Messages contain no
secrets.
"""

from __future__ import annotations

import math

from msgspec import Struct

__all__ = [
    "AlreadyExists",
    "AlreadyOwned",
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
    "QueueClosed",
    "Retry",
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
    """The root of the tree: `except KonvergeError` catches every exception of konverge."""


class Cause(Struct, frozen=True):
    """One cause of an error, as the server lists it in a Status: the field, the reason, the message."""

    field: str
    reason: str
    message: str


class FieldConflict(Struct, frozen=True):
    """One field that another manager owns: the manager's name and the wire path."""

    manager: str
    path: str


class ApiError(KonvergeError):
    """The server refused the request.

    `status` is the HTTP status code, `reason` the one-word reason of the Status ("" when there is none). `verb`, `kind`
    and `key` describe the request and are the prefix of the message.
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
        request = " ".join(part for part in (verb, kind, key) if part)
        super().__init__(f"{request}: {message}" if request else message)
        self.status = status
        self.reason = reason
        self.verb = verb
        self.kind = kind
        self.key = key
        self.causes = causes


class NotFound(ApiError):
    """The object, or the whole collection, does not exist."""


class AlreadyExists(ApiError):
    """An object of that name already exists."""


class Conflict(ApiError):
    """The object changed since it was read: read it again and decide again."""


class ApplyConflict(Conflict):
    """A server-side apply sets fields that other managers own; `conflicts` names each owner and path."""

    conflicts: tuple[FieldConflict, ...] = ()


class Invalid(ApiError):
    """The server rejects the content of the request; `causes` names the wire paths if the Status does."""


class Forbidden(ApiError):
    """RBAC does not allow the request, or admission denied it.

    `needs` is the missing permission, such as "list on deployments.apps", if the server names it.
    """

    needs: str = ""


class Unauthorized(ApiError):
    """The server does not accept the credentials, or no longer accepts them."""


class Expired(ApiError):
    """The requested version is compacted: list again."""


class TooManyRequests(ApiError):
    """The server limits the rate of requests; `retry_after` is its Retry-After in seconds, None if it sent none."""

    retry_after: float | None = None


class ServerError(ApiError):
    """The server failed; `retry_after` is its Retry-After in seconds, None if it sent none."""

    retry_after: float | None = None


class TransportError(KonvergeError):
    """No response: the connection was refused or cut, the request timed out, or TLS failed.

    `sent` is False when the request certainly was not sent, so that a retry is safe for any verb.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class RedirectError(TransportError):
    """The response was a redirect: the server is not an API server. Redirects are not followed, nor is it retried."""


class DecodeError(KonvergeError):
    """The data does not have the expected form; `path` is the wire path ("" when unknown)."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ConfigError(KonvergeError):
    """No usable kubeconfig or service account; the message names the file and the field."""


class NotSynced(KonvergeError):
    """A cache has not finished its first list; `reasons` maps each kind to what it is waiting for."""

    def __init__(self, message: str, *, reasons: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.reasons = reasons or {}


class WriteRefused(KonvergeError):
    """The write fence was closed right before a mutating request; nothing was sent."""


class TerminalError(KonvergeError):
    """Retrying will not help: the next reconcile follows a change of the object or of one it depends on."""


class Retry(KonvergeError):
    """Raised by a reconciler that cannot go on for a reason that is no mistake of its code: a remote is down.

    The key is reconciled again after `after` seconds, or with backoff if that is None, and earlier after a change. It
    is logged as one line without a traceback.

    Raises: ValueError when `after` is not a number of seconds above 0.
    """

    def __init__(self, message: str, *, after: float | None = None) -> None:
        if after is not None and not (isinstance(after, int | float) and 0 < after < math.inf):
            raise ValueError(f"after is a number of seconds above 0, got {after!r} (leave it out for backoff)")
        super().__init__(message)
        self.after = after


class AlreadyOwned(KonvergeError):
    """The object to apply as a child has another controller. Two controllers would overwrite each other's changes."""


class LeaseLost(KonvergeError):
    """This process lost leadership; another one may be leader by now. It exits, and its supervisor starts it again."""


class QueueClosed(KonvergeError):
    """The work queue is closed: `get` returns no more keys."""


class UnknownKind(KonvergeError):
    """The server does not serve this kind, even after a refresh of discovery."""


class WaitTimeout(KonvergeError, TimeoutError):
    """The condition was not met in time; the message describes the last observed state."""


class ControlPlaneError(KonvergeError):
    """The control plane for tests could not be found, built or started; the message ends with the tail of its log."""
