"""The key of an object within its kind: namespace and name.

Work queues and stores contain keys, so there may be hundreds of thousands of them. A key is a frozen msgspec struct:
32 bytes, not tracked by the garbage collector, created in 60 ns (a named tuple: 72 bytes, 270 ns).
"""

from __future__ import annotations

import msgspec

__all__ = ["Key"]


class Key(msgspec.Struct, frozen=True, order=True, gc=False):
    """Namespace and name of one object; `namespace` is "" when the kind is cluster-scoped.

    Promises: immutable, hashable, ordered by namespace and then name; `Key.parse(str(key)) == key` for every key whose
    parts are valid names.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> Key:
        """Parse "namespace/name", or "name" for a cluster-scoped object.

        Raises: ValueError when a part is empty or there are more than two.
        """
        namespace, slash, name = text.rpartition("/")
        if not name or "/" in namespace or (slash and not namespace):
            raise ValueError(f"{text!r} is not a key (write 'namespace/name', or 'name' for a cluster-scoped object)")
        return cls(namespace, name)
