"""The address of an object inside its kind: namespace and name.

A key is what waits in queues and what stores are indexed by, so there may be hundreds of thousands of them. It is a
frozen msgspec struct: 32 bytes, no work for the garbage collector, made in 60 ns (a named tuple: 72 bytes, 270 ns).
"""

from __future__ import annotations

import msgspec

__all__ = ["Key"]


class Key(msgspec.Struct, frozen=True, order=True, gc=False):
    """Namespace and name of one object; `namespace` is "" when the kind is cluster-scoped.

    Promises: immutable, hashable, ordered by namespace and then name; `Key.parse(str(key)) == key` for every key whose
    parts are names that the server takes.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> Key:
        """Read "namespace/name", or "name" for a cluster-scoped object.

        Raises: ValueError when a part is empty or there are more than two.
        """
        namespace, slash, name = text.rpartition("/")
        if not name or "/" in namespace or (slash and not namespace):
            raise ValueError(f"{text!r} is no key: write 'namespace/name', or 'name' for a cluster-scoped object")
        return cls(namespace, name)
