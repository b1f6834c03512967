"""The graph of components and their dependencies: checks, order and layers. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping

__all__ = ["check_graph", "closed_downwards", "layers_of", "reversed_graph"]


def check_graph(names: Collection[str], needs: Mapping[str, Collection[str]]) -> None:
    """Check the names and dependencies of components.

    Raises: ValueError for a duplicate name, a dependency on an unknown component, and a cycle, which it draws.
    """
    duplicates = sorted({name for name in names if list(names).count(name) > 1})
    if duplicates:
        raise ValueError(f"several components have the name {duplicates[0]}")
    for name in names:
        for need in needs[name]:
            if need not in needs:
                raise ValueError(f"{name} -> {need}: there is no component {need} (there are {', '.join(names)})")
    cycle = _find_cycle(needs)
    if cycle:
        raise ValueError(f"components need each other in a cycle: {' -> '.join(cycle)}")


def _find_cycle(needs: Mapping[str, Collection[str]]) -> list[str]:
    """Return the components of a cycle, the first one again at the end; [] if there is none."""
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        pending = [(start, iter(needs[start]))] if start not in done else []
        path += [name for name, _ in pending]
        while pending:
            name, rest = pending[-1]
            need = next(rest, None)
            if need is None:
                done.add(name)
                pending.pop()
                path.pop()
            elif need in path:
                return [*path[path.index(need) :], need]
            elif need not in done:
                pending.append((need, iter(needs[need])))
                path.append(need)
    return []


def layers_of(needs: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the components in layers: each one is in the first layer after everything that it needs."""
    levels: dict[str, int] = {}
    while len(levels) < len(needs):
        for name, required in needs.items():
            if name not in levels and all(need in levels for need in required):
                levels[name] = 1 + max((levels[need] for need in required), default=-1)
    return [[name for name in needs if levels[name] == level] for level in range(max(levels.values(), default=-1) + 1)]


def closed_downwards(selected: Collection[str], needs: Mapping[str, Collection[str]]) -> set[str]:
    """Return those of the selected components whose dependencies are all selected, directly and indirectly."""
    kept: set[str] = set()
    for layer in layers_of(needs):
        kept |= {name for name in layer if name in selected and all(need in kept for need in needs[name])}
    return kept


def reversed_graph(needs: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """Return for each component those that need it."""
    return {name: [other for other, required in needs.items() if name in required] for name in needs}
