"""The object of a write in the version that a webhook asked for."""

from __future__ import annotations

from konverge.controlplane.api.admission import AdmissionRequest
from konverge.controlplane.api.cluster import decode, encode
from konverge.controlplane.api.strategy import Document, Strategy

__all__ = ["Versioned", "convert"]


async def convert(document: Document, source: Strategy, target: Strategy) -> Document:
    """The same object in another version of its resource, as a copy; what a subresource speaks is the same in all."""
    copy: Document = decode(encode(document))
    if source is target or copy.get("kind") != source.info.kind.kind:
        return copy
    stored, stamp = await source.to_storage(copy)
    if stamp != target.stamp:
        stored.pop("kind", None)
        stored.pop("apiVersion", None)
        stored = (await target.from_storage([(stored, stamp)]))[0]
    stored["kind"], stored["apiVersion"] = target.info.kind.kind, target.info.kind.api_version
    return stored


class Versioned:
    """A write on its way past webhooks that want different versions.

    `new` and `old` are in the version of `strategy`. A change that a webhook made is carried from version to version.
    """

    def __init__(self, request: AdmissionRequest) -> None:
        self._request = request
        self.strategy = request.strategy
        self.new = request.object
        self.old = request.old_object

    async def bring_to(self, strategy: Strategy) -> None:
        """Convert both objects, unless they are in this version already."""
        if strategy is self.strategy:
            return
        if self.new is not None:
            self.new = await convert(self.new, self.strategy, strategy)
        if self._request.old_object is not None:
            self.old = await convert(self._request.old_object, self._request.strategy, strategy)
        self.strategy = strategy
