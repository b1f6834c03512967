"""Server-side apply: a manager applies a partial configuration, and owns exactly the fields in it.

The algorithm, step by step:

1. The configuration must have the endpoint's kind and version and no managedFields, and must match the schema without
   duplicate list items.
2. If the object has no managedFields, the manager `before-first-apply` becomes the owner of all its fields.
3. *merged* is the live object with the configuration merged in (`merging`).
4. The manager's new set is the fields of the configuration (`comparison.fields_of`), without those that the endpoint
   resets.
5. Fields that the manager applied before and no longer applies are pruned from *merged*, unless another manager owns
   them (`pruning`).
6. A field that differs between the live and the new object and that another manager owns is a conflict. Without force,
   conflicts are an error; with force, the other managers lose these fields. Every manager loses removed fields.
7. A field that two managers apply with the same value is shared: no difference, no conflict.
8. The time of the manager's entry is updated when the object changes. An apply that changes nothing keeps the time, and
   a new entry then has no time.
9. `kubectl` may take over, without force, fields that its own client-side apply wrote, and keeps that annotation up to
   date (`last_applied`).

The result is neither defaulted nor normalized: it may contain nulls where a field was removed.
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
    """The result of an apply: the object without managedFields, and its managedFields (empty: the key is omitted)."""

    object: dict[str, Any]
    managed_fields: list[dict[str, Any]]


class _Conflicts(Exception):
    """Fields that an apply without force would change, and that other managers own."""

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
        that does not match the schema.
    """
    _check(config, endpoint)
    attempt = _Apply(
        endpoint, live, config, build_identity(manager, "Apply", endpoint.api_version, endpoint.subresource)
    )
    try:
        attempt.initialize_managers(now)
        applied = _run_attempt(attempt, manager=manager, force=force, now=now)
    except (ValidationError, PathElementError) as error:
        raise internal(str(error)) from error
    if manager == KUBECTL:
        return Applied(last_applied.with_last_applied(applied.object, config), applied.managed_fields)
    return applied


def _run_attempt(attempt: _Apply, *, manager: str, force: bool, now: str) -> Applied:
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
    """One apply. `run` may be called twice: without and then with force."""

    def __init__(
        self, endpoint: Endpoint, live: dict[str, Any] | None, config: dict[str, Any], identity: Identity
    ) -> None:
        self.endpoint = endpoint
        self.live = None if live is None else without_managed_fields(live)
        self._config = config
        self._identity = identity
        self._managers = {} if live is None else _read(live)

    def initialize_managers(self, now: str) -> None:
        """Validate both sides; if there are no managers, make `before-first-apply` the owner of the live object."""
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
        """Merge, prune and compute the new owners.

        Raises: _Conflicts without force, when other managers own changed fields.
        """
        endpoint, identity = self.endpoint, self._identity
        fields = fields_of(endpoint.topology.root, self._config)
        owned = subtract(fields, endpoint.reset.get(endpoint.api_version, {}))
        if self.live is None:
            return Applied(self._config, _write_entries({}, identity, Owned(owned, endpoint.api_version, now)))
        managers = reconcile_with_schema(endpoint, self._managers, self.live)
        last = managers.get(identity)
        managers[identity] = Owned(owned, endpoint.api_version, last.time if last is not None else None)
        merged = merge(endpoint.topology.root, self.live, self._config)
        merged = prune(endpoint, merged, managers, last)
        return self._finish(merged, managers, force=force, now=now)

    def _finish(self, merged: dict[str, Any], managers: Managers, *, force: bool, now: str) -> Applied:
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
            live if is_noop else merged,
            _write_entries(managers, self._identity, Owned(owned.fields, owned.version, time)),
        )


def _write_entries(managers: Managers, identity: Identity, owned: Owned) -> list[dict[str, Any]]:
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
    except PathElementError as error:
        raise internal(f"failed to decode managed fields: {error}") from error


def _validate(root: Any, obj: dict[str, Any], what: str, *, allow_duplicates: bool) -> None:
    try:
        validate(root, obj, allow_duplicates=allow_duplicates)
    except ValidationError as error:
        raise internal(f"{what} ({_object_text(obj)}): {error}") from error


def _conflict_error(found: dict[Identity, FieldSet]) -> PatchError:
    conflicts = [(identity, path) for identity in sorted(found, key=_name) for path in paths(found[identity])]
    causes = [(f"conflict with {identity}", path) for identity, path in conflicts]
    if len(conflicts) == 1:
        return apply_conflict(f"Apply failed with 1 conflict: {causes[0][0]}: {causes[0][1]}", causes)
    lines = []
    for identity in sorted(found, key=_name):
        lines.append(f"conflicts with {identity}:")
        lines += [f"- {path}" for path in paths(found[identity])]
    return apply_conflict(f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines), causes)


def _name(identity: Identity) -> str:
    return identity.text
