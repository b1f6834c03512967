"""Objects that an operator shares between its reconcilers and runnables: an HTTP session, a pool of connections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["find_shared"]

T = TypeVar("T")


def find_shared(values: Iterable[object], type_: type[T]) -> T:
    """Return the first shared object of a type.

    Raises: ValueError when there is none.
    """
    names = []
    for value in values:
        if isinstance(value, type_):
            return value
        names.append(type(value).__name__)
    raise ValueError(
        f"no {type_.__name__} is shared: add a function that opens it with Operator(shared=(...,))"
        f" (shared: {', '.join(names) or 'nothing'})"
    )
