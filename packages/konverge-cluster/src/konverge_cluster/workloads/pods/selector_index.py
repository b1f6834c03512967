"""An index of selectors by the labels that they require, so that few are evaluated for each object."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, TypeAlias

from konverge.objects import Key, LabelSelector
from konverge.objects.labels import Operator

__all__ = ["SelectorIndex"]

_Bucket: TypeAlias = tuple[str, str, str]

_ANY: Final = ("", "")
_EXACT: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


class SelectorIndex:
    """The selectors of owners, found by the labels of an object.

    Promises: `matching` returns exactly the owners in the namespace whose selector matches. A selector that requires
    one label value is evaluated only for objects that have it; of several such labels, the one with the fewest other
    selectors is used.
    """

    def __init__(self) -> None:
        self._selectors: dict[Key, LabelSelector] = {}
        self._bucket_of: dict[Key, _Bucket] = {}
        self._buckets: defaultdict[_Bucket, set[Key]] = defaultdict(set)

    def put(self, owner: Key, selector: LabelSelector) -> None:
        """Set the selector of an owner."""
        if self._selectors.get(owner) == selector:
            return
        self.drop(owner)
        bucket = min(self._candidates(owner.namespace, selector), key=lambda each: len(self._buckets.get(each, ())))
        self._selectors[owner] = selector
        self._bucket_of[owner] = bucket
        self._buckets[bucket].add(owner)

    def drop(self, owner: Key) -> None:
        """Remove an owner."""
        self._selectors.pop(owner, None)
        bucket = self._bucket_of.pop(owner, None)
        if bucket is not None:
            self._buckets[bucket].discard(owner)
            if not self._buckets[bucket]:
                del self._buckets[bucket]

    def matching(self, namespace: str, labels: Mapping[str, str]) -> list[Key]:
        """Return the owners whose selector matches an object with these labels, in order."""
        buckets = [(namespace, *_ANY), *((namespace, name, value) for name, value in labels.items())]
        owners = (owner for bucket in buckets for owner in self._buckets.get(bucket, ()))
        return sorted(owner for owner in owners if self._selectors[owner].matches(labels))

    def _candidates(self, namespace: str, selector: LabelSelector) -> list[_Bucket]:
        exact = [one for one in selector.requirements if one.operator in _EXACT and len(one.values) == 1]
        return [(namespace, one.key, one.values[0]) for one in exact] or [(namespace, *_ANY)]
