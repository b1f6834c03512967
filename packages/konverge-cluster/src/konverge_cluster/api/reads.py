"""Get and list: which objects a request returns, and at which revision.

| resourceVersion | match | limit | revision |
|---|---|---|---|
| "" | | any | current |
| "0" | | ignored | current |
| N | "" or NotOlderThan | none | current, which is at least N |
| N | "" | set | exactly N |
| N | Exact | any | exactly N |

A request for a future version waits three seconds and then fails with 504. A page is a snapshot: its continue token
holds the revision and the key to continue from.
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

_WAIT_TIMEOUT: Final = 3.0
_WAIT_INTERVAL: Final = 0.1
_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_TOKEN_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
    " the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
    " Continuing with the provided token results in an inconsistent list - objects that were created, modified, or"
    " deleted between the time the first chunk was returned and now may show up in the list."
)


def find_entry(cluster: Cluster, strategy: Strategy, namespace: str, name: str) -> Entry:
    """Return the stored entry of an object.

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
            await wait_for_revision(cluster, _parse_object_version(version))
    return await entry_response(cluster, call, find_entry(cluster, call.strategy, call.namespace, call.name))


def _parse_object_version(text: str) -> int:
    try:
        return unsigned(text)
    except ValueError as error:
        raise status_errors.failure(500, f"resourceVersion: Invalid value: {quote(text)}: {error}") from None


def _parse_list_version(text: str) -> int:
    try:
        return unsigned(text)
    except ValueError as error:
        detail = f"invalid resource version: resourceVersion: Invalid value: {quote(text)}: {error}"
        raise status_errors.bad_request(detail) from None


async def wait_for_revision(cluster: Cluster, revision: int) -> None:
    """Wait until the storage has reached a revision.

    Raises: StatusError 504 after three seconds.
    """
    if revision <= cluster.storage.revision:
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _WAIT_TIMEOUT
    while loop.time() < deadline:
        await asyncio.sleep(_WAIT_INTERVAL)
        if revision <= cluster.storage.revision:
            return
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    text = f"Too large resource version: {revision}, current: {cluster.storage.revision}"
    raise status_errors.timeout(text, causes=causes, retry_after=1)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list: its entries, their revision, and the continue token ("" on the last page)."""

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
    metadata = page.metadata(custom=call.strategy.custom and call.view.plain)
    return await list_response(cluster, call, page.entries, metadata)


async def list_entries(
    cluster: Cluster, strategy: Strategy, namespace: str, options: ListOptions, selection: Selection
) -> Page:
    """Return the page of entries that a list request selects.

    Raises: StatusError 400, 410 or 504 for versions and tokens that cannot be served.
    """
    start = ""
    # At most one object has the name, so there is no paging and no token.
    limit = 0 if selection.name and namespace else options.limit
    exact: int | None = None
    if options.continuation:
        exact, start = _read_token(options, namespace)
    elif options.resource_version:
        exact, limit = await _requested_revision(cluster, options, limit)
    collection = cluster.collection(strategy)
    if exact is None:
        revision, entries = cluster.storage.revision, collection.entries(namespace, start)
    else:
        revision = exact
        try:
            entries = collection.entries_at(exact, namespace, start)
        except RevisionExpired:
            raise _expired_error(options, namespace, start) from None
    await selection.prepare(cluster, entries)
    return _page(entries, revision, limit, selection, namespace)


async def _requested_revision(cluster: Cluster, options: ListOptions, limit: int) -> tuple[int | None, int]:
    version = _parse_list_version(options.resource_version)
    if version == 0:
        return None, 0
    await wait_for_revision(cluster, version)
    exact = options.match == "Exact" or (not options.match and limit > 0)
    return (version if exact else None), limit


def _expired_error(options: ListOptions, namespace: str, start: str) -> status_errors.StatusError:
    if options.continuation:
        return status_errors.expired(_TOKEN_TOO_OLD, token=_token(-1, start, namespace))
    return status_errors.expired(_TOO_OLD)


def _page(entries: list[Entry], revision: int, limit: int, selection: Selection, namespace: str) -> Page:
    if limit <= 0 and selection.everything:
        return Page(entries, revision)
    selected: list[Entry] = []
    for index, entry in enumerate(entries):
        if selection.everything or selection.matches(entry):
            selected.append(entry)
        if 0 < limit <= len(selected):
            if index == len(entries) - 1:
                break
            remaining = len(entries) - limit if selection.everything else None
            # The next key in byte order.
            return Page(selected, revision, _token(revision, entry.key + "\0", namespace), remaining)
    return Page(selected, revision)


def _token(revision: int, start: str, namespace: str) -> str:
    rest = start[len(namespace) :] if namespace else f"/{start}"
    content = encode({"v": "meta.k8s.io/v1", "rv": revision, "start": rest})
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _read_token(options: ListOptions, namespace: str) -> tuple[int | None, str]:
    """Return the revision (None for the current one) and the first key of a page.

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
        raise ValueError(f": illegal base64 data at input byte {_first_invalid_character(token)}") from None
    try:
        go_json.duplicate_keys(content.decode("utf-8", "replace"))
    except go_json.JsonSyntaxError as error:
        raise ValueError(f": {error}") from None
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


def _first_invalid_character(token: str) -> int:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # If every character is valid, the length is wrong: one character more than whole groups of four.
    return next((index for index, character in enumerate(token) if character not in alphabet), len(token) // 4 * 4)
