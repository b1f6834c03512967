"""Which resources the server serves, at this moment.

Resources come and go while the server runs (CRDs), so everything that is derived from the registry (discovery, OpenAPI)
asks for `generation`, which grows with every change.
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge_cluster.api.strategy import Strategy

__all__ = ["Registry"]


class Registry:
    """Strategies by group, version and plural.

    Promises: `find` is one dict lookup; the order of groups and versions is the order in which they were first added,
    and a version that goes and comes back keeps its place.
    """

    def __init__(self) -> None:
        self._strategies: dict[tuple[str, str, str], Strategy] = {}
        self._versions: dict[tuple[str, str], dict[str, Strategy]] = {}
        self.generation = 0

    def add(self, strategy: Strategy) -> None:
        """Serve a resource from now on; the same group, version and plural again replaces the old strategy."""
        kind = strategy.info.kind
        self._strategies[kind.group, kind.version, kind.plural] = strategy
        self._versions.setdefault((kind.group, kind.version), {})[kind.plural] = strategy
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        """Stop serving a resource; nothing happens when it is not served."""
        if self._strategies.pop((group, version, plural), None) is not None:
            del self._versions[group, version][plural]
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Strategy | None:
        return self._strategies.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        return bool(self._versions.get((group, version)))

    def versions(self) -> list[tuple[str, str]]:
        """All group and version pairs that serve something."""
        return [pair for pair, resources in self._versions.items() if resources]

    def resources(self, group: str, version: str) -> list[Strategy]:
        return list(self._versions.get((group, version), {}).values())

    def by_storage(self, storage: tuple[str, str]) -> Strategy | None:
        """One strategy that serves objects of this collection, the first that was added."""
        return next((each for each in self if each.info.storage == storage), None)

    def __iter__(self) -> Iterator[Strategy]:
        return iter(list(self._strategies.values()))
