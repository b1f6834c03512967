"""The object of a write in the version that a webhook asked for."""

from __future__ import annotations

from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.cluster import decode, encode
from konverge_cluster.api.scales import scale_of, set_replicas
from konverge_cluster.api.strategy import Document, Strategy

__all__ = ["VersionedAttributes", "convert"]


async def convert(document: Document, source: Strategy, target: Strategy) -> Document:
    """The same object in another version of its resource, as a copy; what a subresource speaks is the same in all."""
    copy: Document = decode(encode(document))
    if source is target or copy.get("kind") != source.info.kind.kind:
        return copy
    stored, encoding_version = await source.to_storage(copy)
    if encoding_version != target.encoding_version:
        stored.pop("kind", None)
        stored.pop("apiVersion", None)
        stored = (await target.from_storage([(stored, encoding_version)]))[0]
    stored["kind"], stored["apiVersion"] = target.info.kind.kind, target.info.kind.api_version
    return stored


class VersionedAttributes:
    """A write on its way past webhooks that want different versions.

    `new` and `old` are in the version of `strategy`; of a scale they are the Scale objects. A change that a webhook
    made is carried from version to version, and `give_back` puts it into the request.
    """

    def __init__(self, request: AdmissionRequest, *, now: str = "") -> None:
        """Take the objects from a request. With `now` a Scale shows its managed fields, a new owner with that time."""
        self._request = request
        self._scales = request.subresource == "scale" and request.strategy.scaling is not None
        self.strategy = request.strategy
        self.old: Document | None = None
        self._first = self.old = self._shown(request.old_object, now)
        self.new = self._shown(request.object, now)

    def _shown(self, document: Document | None, now: str) -> Document | None:
        if document is None or not self._scales:
            return document
        scale = scale_of(self._request.strategy, document)
        if not now:
            scale["metadata"].pop("managedFields", None)
        known = self.old["metadata"].get("managedFields", []) if self.old else []
        for entry in scale["metadata"].get("managedFields", []):
            if entry not in known:
                entry.setdefault("time", now)
        return scale

    async def convert_to(self, strategy: Strategy) -> None:
        """Convert both objects, unless they are in this version already."""
        if strategy is self.strategy:
            return
        if self.new is not None:
            self.new = await convert(self.new, self.strategy, strategy)
        if self._first is not None:
            self.old = await convert(self._first, self._request.strategy, strategy)
        self.strategy = strategy

    async def update_request(self) -> None:
        """Make the new object, in the version of the request, what the request is about."""
        await self.convert_to(self._request.strategy)
        if not self._scales:
            self._request.object = self.new
        elif self.new is not None and self._request.object is not None:
            set_replicas(self._request.strategy, self._request.object, self.new)
