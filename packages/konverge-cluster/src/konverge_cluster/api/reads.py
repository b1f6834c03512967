"""Get and list: which state of which objects a request sees.

| resourceVersion | match | limit | what is read |
|---|---|---|---|
| "" | | any | the present |
| "0" | | ignored | the present |
| N | "" or NotOlderThan | none | the present, which is at least N |
| N | "" | some | exactly N |
| N | Exact | any | exactly N |

A version of the future is waited for, three seconds, and then refused with 504. A page is a snapshot: its token holds
the revision and the key to go on from.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from dataclasses import dataclass
from typing import Any, Final

from konverge_cluster.api import go_json, status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, decode, encode, key_of
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.options import ListOptions, unsigned
from konverge_cluster.api.responses import Response
from konverge_cluster.api.selections import Selection
from konverge_cluster.api.strategy import Strategy
from konverge_cluster.api.views import entry_response, list_response
from konverge_cluster.storage import Entry, RevisionExpired

__all__ = ["find_entry", "handle_get", "handle_list", "list_entries", "wait_for_revision"]

_PATIENCE: Final = 3.0
_TICK: Final = 0.1
_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_TOKEN_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
    " the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
    " Continuing with the provided token results in an inconsistent list - objects that were created, modified, or"
    " deleted between the time the first chunk was returned and now may show up in the list."
)


def find_entry(cluster: Cluster, strategy: Strategy, namespace: str, name: str) -> Entry:
    """The stored object.

    Raises: StatusError 404.
    """
    entry = cluster.collection(strategy).get(key_of(namespace, name))
    if entry is None:
        kind = strategy.info.kind
        raise status_errors.not_found(kind.group, kind.plural, name)
    return entry


async def handle_get(cluster: Cluster, call: Call) -> Response:
    if call.query:
        version = call.query.text("resourceVersion")
        if version:
            await wait_for_revision(cluster, _version_of_object(version))
    return await entry_response(cluster, call, find_entry(cluster, call.strategy, call.namespace, call.name))


def _version_of_object(text: str) -> int:
    try:
        return unsigned(text)
    except ValueError as error:
        raise status_errors.failure(500, f"resourceVersion: Invalid value: {quote(text)}: {error}") from None


def _version_of_list(text: str) -> int:
    try:
        return unsigned(text)
    except ValueError as error:
        why = f"invalid resource version: resourceVersion: Invalid value: {quote(text)}: {error}"
        raise status_errors.bad_request(why) from None


async def wait_for_revision(cluster: Cluster, revision: int) -> None:
    """Wait until the storage has reached a revision.

    Raises: StatusError 504 after three seconds.
    """
    if revision <= cluster.storage.revision:
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    while loop.time() < deadline:
        await asyncio.sleep(_TICK)
        if revision <= cluster.storage.revision:
            return
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    text = f"Too large resource version: {revision}, current: {cluster.storage.revision}"
    raise status_errors.timeout(text, causes=causes, retry_after=1)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: its objects, the revision they are of, how to go on ("" when this is the end)."""

    entries: list[Entry]
    revision: int
    token: str = ""
    remaining: int | None = None

    def metadata(self, *, custom: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.token or custom:
            found["continue"] = self.token
        if self.remaining is not None:
            found["remainingItemCount"] = self.remaining
        return found


async def handle_list(cluster: Cluster, call: Call) -> Response:
    options = ListOptions.read(call.query, watch=False)
    selection = Selection.read(call.strategy, options)
    page = await list_entries(cluster, call.strategy, call.namespace, options, selection)
    shown = page.metadata(custom=call.strategy.custom and call.view.plain)
    return await list_response(cluster, call, page.entries, shown)


async def list_entries(
    cluster: Cluster, strategy: Strategy, namespace: str, options: ListOptions, selection: Selection
) -> Page:
    """The objects that a list request sees.

    Raises: StatusError 400, 410 or 504 for versions and tokens that cannot be served.
    """
    start = ""
    # There is one object of a name at most: no page, no token.
    limit = 0 if selection.name and namespace else options.limit
    exact: int | None = None
    if options.continuation:
        exact, start = _read_token(options, namespace)
    elif options.resource_version:
        exact, limit = await _wanted_revision(cluster, options, limit)
    collection = cluster.collection(strategy)
    if exact is None:
        revision, entries = cluster.storage.revision, collection.entries(namespace, start)
    else:
        revision = exact
        try:
            entries = collection.entries_at(exact, namespace, start)
        except RevisionExpired:
            raise _too_old(options, namespace, start) from None
    await selection.prepare(cluster, entries)
    return _page(entries, revision, limit, selection, namespace)


async def _wanted_revision(cluster: Cluster, options: ListOptions, limit: int) -> tuple[int | None, int]:
    version = _version_of_list(options.resource_version)
    if version == 0:
        return None, 0
    await wait_for_revision(cluster, version)
    exact = options.match == "Exact" or (not options.match and limit > 0)
    return (version if exact else None), limit


def _too_old(options: ListOptions, namespace: str, start: str) -> status_errors.StatusError:
    if options.continuation:
        return status_errors.expired(_TOKEN_TOO_OLD, token=_token(-1, start, namespace))
    return status_errors.expired(_TOO_OLD)


def _page(entries: list[Entry], revision: int, limit: int, selection: Selection, namespace: str) -> Page:
    if limit <= 0 and selection.everything:
        return Page(entries, revision)
    chosen: list[Entry] = []
    for index, entry in enumerate(entries):
        if selection.everything or selection.matches(entry):
            chosen.append(entry)
        if 0 < limit <= len(chosen):
            if index == len(entries) - 1:
                break
            remaining = len(entries) - limit if selection.everything else None
            # The next key in byte order after this one.
            return Page(chosen, revision, _token(revision, entry.key + "\0", namespace), remaining)
    return Page(chosen, revision)


def _token(revision: int, start: str, namespace: str) -> str:
    rest = start[len(namespace) :] if namespace else f"/{start}"
    content = encode({"v": "meta.k8s.io/v1", "rv": revision, "start": rest})
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _read_token(options: ListOptions, namespace: str) -> tuple[int | None, str]:
    """The revision (None for the present) and the first key of a page.

    Raises: StatusError 400.
    """
    if options.resource_version not in ("", "0"):
        raise status_errors.bad_request("specifying resource version is not allowed when using continue")
    try:
        revision, rest = _decode_token(options.continuation)
    except ValueError as error:
        raise status_errors.bad_request(f"invalid continue token: continue key is not valid{error}") from None
    start = f"{namespace}{rest}" if namespace else rest[1:]
    return (None if revision < 0 else revision), start


def _decode_token(token: str) -> tuple[int, str]:
    try:
        content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f": illegal base64 data at input byte {_first_bad_letter(token)}") from None
    try:
        go_json.duplicate_keys(content.decode("utf-8", "replace"))
    except go_json.JsonSyntaxError as fault:
        raise ValueError(f": {fault}") from None
    found = decode(content)
    if not isinstance(found, dict) or found.get("v") != "meta.k8s.io/v1":
        version = found.get("v", "") if isinstance(found, dict) else ""
        raise ValueError(f": server does not recognize this encoded version {version}")
    revision, start = found.get("rv", 0), found.get("start", "")
    if not isinstance(revision, int) or revision == 0:
        raise ValueError(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise ValueError(": encoded start key empty (version meta.k8s.io/v1)")
    path = start if start.startswith("/") else f"/{start}"
    if "//" in path or "/../" in f"{path}/" or "/./" in f"{path}/":
        raise ValueError(f": {start}")
    return revision, path


def _first_bad_letter(token: str) -> int:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # Without a wrong letter it is the length that is wrong: one letter more than whole groups of four.
    return next((index for index, letter in enumerate(token) if letter not in letters), len(token) // 4 * 4)
