"""Selection of objects by label selector, field selector and name, for lists, watches and deletions."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.objects.fields import FieldRequirement, FieldSelector
from konverge.objects.labels import LabelSelector
from konverge_cluster.api import status_errors
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.options import ListOptions, read_selectors
from konverge_cluster.api.strategy import Strategy
from konverge_cluster.storage import Entry

__all__ = ["Selection"]

_ALWAYS = frozenset({"metadata.name", "metadata.namespace"})


class Selection:
    """A label selector, a field selector and an optional name; `everything` is True when none of them is set."""

    __slots__ = ("_cache_key", "_fields", "_labels", "_reads_objects", "_strategy", "everything", "name")

    def __init__(self, strategy: Strategy, labels: LabelSelector | None, fields: FieldSelector | None) -> None:
        self._strategy = strategy
        self._labels = labels if labels is not None and labels.requirements else None
        self._fields = fields if fields is not None and fields.requirements else None
        self.everything = self._labels is None and self._fields is None
        self._reads_objects = self._fields is not None and not self._fields.fields <= _ALWAYS
        self._cache_key = ("fields", strategy.info.kind.api_version, strategy.encoding_version)
        self.name = self._exact_name()

    @classmethod
    def read(cls, strategy: Strategy, options: ListOptions, name: str = "") -> Selection:
        """Parse the selectors of a request; `name` is the name in its path.

        Raises: StatusError 400 with the text of the real server.
        """
        labels, fields = read_selectors(options)
        for requirement in fields.requirements if fields else ():
            if requirement.field not in _ALWAYS and requirement.field not in strategy.field_labels:
                raise status_errors.bad_request(strategy.unknown_field_label(requirement.field))
        return cls(strategy, labels, _with_name(fields, name))

    def _exact_name(self) -> str:
        for requirement in self._fields.requirements if self._fields else ():
            if requirement.field == "metadata.name" and requirement.equal:
                return requirement.value
        return ""

    async def prepare(self, cluster: Cluster, entries: Iterable[Entry | None]) -> None:
        """Read the fields that the field selector names from the objects; each entry caches them."""
        if not self._reads_objects:
            return
        unread = [entry for entry in entries if entry is not None and self._cache_key not in entry.cache]
        if unread:
            for entry, document in zip(unread, await cluster.documents(self._strategy, unread), strict=True):
                entry.cache[self._cache_key] = _names(entry) | self._strategy.fields(document)

    def matches(self, entry: Entry) -> bool:
        """Report whether an entry is selected. Call `prepare` first."""
        if self._labels is not None and not self._labels.matches(entry.labels):
            return False
        if self._fields is None:
            return True
        return self._fields.matches(entry.cache[self._cache_key] if self._reads_objects else _names(entry))


def _names(entry: Entry) -> dict[str, str]:
    namespace, _, name = entry.key.rpartition("/")
    return {"metadata.name": name, "metadata.namespace": namespace}


def _with_name(fields: FieldSelector | None, name: str) -> FieldSelector | None:
    if not name:
        return fields
    requirement = FieldRequirement("metadata.name", name)
    if fields is None or not fields.requirements:
        return FieldSelector((requirement,))
    if requirement not in fields.requirements:
        raise status_errors.bad_request("fieldSelector metadata.name doesn't match requested name")
    return fields
