"""Server-side apply: a manager says what it wants of an object, and owns just that.

The algorithm, in steps that a reader can check one by one:

1. The configuration must be of the endpoint's kind and version, carry no managedFields, and fit the schema without
   duplicate list items.
2. An object without managedFields is told apart first: all it has belongs to `before-first-apply`.
3. *merged* is the live object with the configuration merged in (`merging`).
4. The manager's new set is what the configuration says (`comparison.fields_of`), less what the endpoint resets.
5. What the manager applied before and no longer does is pruned from *merged*, unless somebody else owns it (`pruning`).
6. Whatever differs between the live and the new object and is owned by others is a conflict. Unforced, the first
   conflict ends it; forced, the others lose these fields. Everybody loses what is gone.
7. A field that two managers apply with the same value is shared: no difference, no conflict.
8. The manager's time moves when the object changes. An apply that changes nothing keeps it, and an entry that is new
   then has none.
9. `kubectl` may take over, unforced, what its own client-side apply wrote, and keeps that annotation true
   (`last_applied`).

The result is not defaulted and not normalised: it may hold nulls where something was taken out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from konverge_cluster.patches import last_applied
from konverge_cluster.patches.comparison import fields_of, same
from konverge_cluster.patches.elements import PathElementError
from konverge_cluster.patches.endpoints import Endpoint, without_managed_fields
from konverge_cluster.patches.errors import PatchError, apply_conflict, bad_request, internal
from konverge_cluster.patches.field_sets import FieldSet, difference, paths, subtract
from konverge_cluster.patches.managers import Identity, Managers, Owned, build_identity, read_managers, write_managers
from konverge_cluster.patches.merging import merge
from konverge_cluster.patches.ownership import Change, reconcile_with_schema, strip
from konverge_cluster.patches.pruning import prune
from konverge_cluster.patches.updates import managers_after_update
from konverge_cluster.patches.validation import ValidationError, validate

__all__ = ["Applied", "apply_patch"]

KUBECTL = "kubectl"


class Applied(NamedTuple):
    """What an apply gives: the object without managedFields, and its managedFields (empty: the key is left out)."""

    object: dict[str, Any]
    managed_fields: list[dict[str, Any]]


class _Conflicts(Exception):
    """What others own of what an unforced apply wants to change."""

    def __init__(self, found: dict[Identity, FieldSet]) -> None:
        super().__init__()
        self.found = found


def apply_patch(
    live: dict[str, Any] | None,
    config: dict[str, Any],
    *,
    manager: str,
    endpoint: Endpoint,
    now: str,
    force: bool = False,
) -> Applied:
    """Apply a configuration to the live object (None when it does not exist yet).

    Raises: PatchError 400 for a configuration of another kind or with managedFields, 409 for conflicts, 500 for one
        that does not fit the schema.
    """
    _check(config, endpoint)
    attempt = _Apply(
        endpoint, live, config, build_identity(manager, "Apply", endpoint.api_version, endpoint.subresource)
    )
    try:
        attempt.initialize_managers(now)
        applied = _settled(attempt, manager=manager, force=force, now=now)
    except (ValidationError, PathElementError) as wrong:
        raise internal(str(wrong)) from wrong
    if manager == KUBECTL:
        return Applied(last_applied.with_last_applied(applied.object, config), applied.managed_fields)
    return applied


def _settled(attempt: _Apply, *, manager: str, force: bool, now: str) -> Applied:
    try:
        return attempt.run(force=force, now=now)
    except _Conflicts as conflicts:
        found = conflicts.found
        if manager == KUBECTL and attempt.live is not None:
            allowed = last_applied.client_side_fields(attempt.endpoint, attempt.live)
            found = {identity: rest for identity, fields in found.items() if (rest := difference(fields, allowed))}
            if not found:
                return attempt.run(force=True, now=now)
    raise _conflict_error(found)


def _check(config: dict[str, Any], endpoint: Endpoint) -> None:
    version, kind = config.get("apiVersion") or "", config.get("kind") or ""
    if (version, kind) != (endpoint.api_version, endpoint.kind):
        raise bad_request(f"invalid object type: {_kind_text(version, kind)}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        raise bad_request("metadata.managedFields must be nil")


def _kind_text(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _object_text(obj: dict[str, Any]) -> str:
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kind = _kind_text(obj.get("apiVersion") or "", obj.get("kind") or "")
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {kind}"


class _Apply:
    """One apply, up to the end that `force` decides."""

    def __init__(
        self, endpoint: Endpoint, live: dict[str, Any] | None, config: dict[str, Any], identity: Identity
    ) -> None:
        self.endpoint = endpoint
        self.live = None if live is None else without_managed_fields(live)
        self._config = config
        self._identity = identity
        self._managers = {} if live is None else _read(live)

    def initialize_managers(self, now: str) -> None:
        """Check both sides, and give what nobody owns yet to `before-first-apply`."""
        root = self.endpoint.topology.root
        _validate(root, self._config, "failed to create typed patch object", allow_duplicates=False)
        if self.live is None:
            return
        if not self.endpoint.topology.structured:
            # The schema of a custom resource may have changed since it was written.
            _validate(root, self.live, "failed to create typed live object", allow_duplicates=True)
        if not self._managers:
            self._managers = managers_after_update(
                None, self.live, {}, manager="before-first-apply", endpoint=self.endpoint, now=now
            )

    def run(self, *, force: bool, now: str) -> Applied:
        """Merge, prune and settle.

        Raises: _Conflicts when it is not forced and others own what it changes.
        """
        endpoint, identity = self.endpoint, self._identity
        said = fields_of(endpoint.topology.root, self._config)
        owned = subtract(said, endpoint.reset.get(endpoint.api_version, {}))
        if self.live is None:
            return Applied(self._config, _written({}, identity, Owned(owned, endpoint.api_version, now)))
        managers = reconcile_with_schema(endpoint, self._managers, self.live)
        last = managers.get(identity)
        managers[identity] = Owned(owned, endpoint.api_version, last.time if last is not None else None)
        merged = merge(endpoint.topology.root, self.live, self._config)
        merged = prune(endpoint, merged, managers, last)
        return self._settle(merged, managers, force=force, now=now)

    def _settle(self, merged: dict[str, Any], managers: Managers, *, force: bool, now: str) -> Applied:
        live = self.live or {}
        change = Change(self.endpoint, live, merged)
        conflicts = change.conflicts(managers, exclude=self._identity)
        if conflicts and not force:
            raise _Conflicts(conflicts)
        is_noop = same(live, merged)
        owned = managers[self._identity]
        managers = change.managers_after(managers, exclude=self._identity)
        time = owned.time if is_noop else now
        return Applied(
            live if is_noop else merged, _written(managers, self._identity, Owned(owned.fields, owned.version, time))
        )


def _written(managers: Managers, identity: Identity, owned: Owned) -> list[dict[str, Any]]:
    fields = strip(owned.fields)
    managers = {key: value for key, value in managers.items() if key != identity}
    if fields:
        managers[identity] = owned.with_fields(fields)
    return write_managers(managers)


def _read(live: dict[str, Any]) -> Managers:
    metadata = live.get("metadata")
    entries = (metadata.get("managedFields") if isinstance(metadata, dict) else None) or []
    try:
        return read_managers(entries, trusted=entries)
    except PathElementError as wrong:
        raise internal(f"failed to decode managed fields: {wrong}") from wrong


def _validate(root: Any, obj: dict[str, Any], what: str, *, allow_duplicates: bool) -> None:
    try:
        validate(root, obj, allow_duplicates=allow_duplicates)
    except ValidationError as wrong:
        raise internal(f"{what} ({_object_text(obj)}): {wrong}") from wrong


def _conflict_error(found: dict[Identity, FieldSet]) -> PatchError:
    listed = [(identity, path) for identity in sorted(found, key=_name) for path in paths(found[identity])]
    causes = [(f"conflict with {identity}", path) for identity, path in listed]
    if len(listed) == 1:
        return apply_conflict(f"Apply failed with 1 conflict: {causes[0][0]}: {causes[0][1]}", causes)
    lines = []
    for identity in sorted(found, key=_name):
        lines.append(f"conflicts with {identity}:")
        lines += [f"- {path}" for path in paths(found[identity])]
    return apply_conflict(f"Apply failed with {len(listed)} conflicts: " + "\n".join(lines), causes)


def _name(identity: Identity) -> str:
    return identity.text
