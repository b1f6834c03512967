"""The registry of resources that the server currently serves.

Resources are added and removed while the server runs (CRDs). Everything derived from the registry (discovery, OpenAPI)
compares `generation`, which every change increments.
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge_cluster.api.strategy import Strategy

__all__ = ["Registry"]


class Registry:
    """Strategies by group, version and plural.

    Promises: `find` is one dict lookup. Groups and versions are in the order in which they were first added; a version
    that is removed and added again keeps its position.
    """

    def __init__(self) -> None:
        self._strategies: dict[tuple[str, str, str], Strategy] = {}
        self._versions: dict[tuple[str, str], dict[str, Strategy]] = {}
        self._sharing: dict[tuple[str, str], list[Strategy]] = {}
        self.generation = 0

    def add(self, strategy: Strategy) -> None:
        """Start serving a resource; a strategy with the same group, version and plural is replaced."""
        kind = strategy.info.kind
        self._strategies[kind.group, kind.version, kind.plural] = strategy
        self._versions.setdefault((kind.group, kind.version), {})[kind.plural] = strategy
        self._sharing.clear()
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        """Stop serving a resource; do nothing when it is not served."""
        if self._strategies.pop((group, version, plural), None) is not None:
            del self._versions[group, version][plural]
            self._sharing.clear()
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Strategy | None:
        return self._strategies.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        return bool(self._versions.get((group, version)))

    def versions(self) -> list[tuple[str, str]]:
        """Return the group and version pairs that have resources."""
        return [pair for pair, resources in self._versions.items() if resources]

    def resources(self, group: str, version: str) -> list[Strategy]:
        return list(self._versions.get((group, version), {}).values())

    def sharing(self, storage: tuple[str, str]) -> list[Strategy]:
        """Return the strategies that share a collection, in the order in which they were added."""
        if storage not in self._sharing:
            self._sharing[storage] = [each for each in self if each.info.storage == storage]
        return self._sharing[storage]

    def by_storage(self, storage: tuple[str, str]) -> Strategy | None:
        """Return the first strategy that was added for this collection, or None."""
        return next(iter(self.sharing(storage)), None)

    def __iter__(self) -> Iterator[Strategy]:
        return iter(list(self._strategies.values()))
