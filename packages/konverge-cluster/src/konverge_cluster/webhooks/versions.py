"""The objects of a write, converted to the version that a webhook expects (apiserver: VersionedAttributes)."""

from __future__ import annotations

from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.cluster import decode, encode
from konverge_cluster.api.scales import scale_of, set_replicas
from konverge_cluster.api.strategy import Document, Strategy

__all__ = ["VersionedAttributes", "convert"]


async def convert(document: Document, source: Strategy, target: Strategy) -> Document:
    """Return a copy of an object in another version of its resource; a subresource's kind is not converted."""
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
    """The new and the old object of a write, for webhooks that expect different versions.

    `new` and `old` are in the version of `strategy`; for the scale subresource they are Scale objects. A webhook's
    change is converted from version to version, and `update_request` copies it to the request.
    """

    def __init__(self, request: AdmissionRequest, *, now: str = "") -> None:
        """Copy the objects of a request. With `now` a Scale has managedFields; a new manager gets that time."""
        self._request = request
        self._is_scale = request.subresource == "scale" and request.strategy.scaling is not None
        self.strategy = request.strategy
        self.old: Document | None = None
        self._original_old = self.old = self._to_scale(request.old_object, now)
        self.new = self._to_scale(request.object, now)

    def _to_scale(self, document: Document | None, now: str) -> Document | None:
        if document is None or not self._is_scale:
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
        """Convert both objects, unless they are already in this version."""
        if strategy is self.strategy:
            return
        if self.new is not None:
            self.new = await convert(self.new, self.strategy, strategy)
        if self._original_old is not None:
            self.old = await convert(self._original_old, self._request.strategy, strategy)
        self.strategy = strategy

    async def update_request(self) -> None:
        """Set the request's object to the new object, converted to the version of the request."""
        await self.convert_to(self._request.strategy)
        if not self._is_scale:
            self._request.object = self.new
        elif self.new is not None and self._request.object is not None:
            set_replicas(self._request.strategy, self._request.object, self.new)
