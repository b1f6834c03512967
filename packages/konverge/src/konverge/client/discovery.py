"""Which kinds the server serves.

Asked on first need, in the aggregated form (one request each for /api and /apis), and asked again when a kind is
unknown: a CRD may have come since. Kinds are found by api version and kind, or by the names that people write:
"deployments.apps", "deployments", "deployment.apps", "deploy", "deployments.v1.apps".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from konverge.client.caller import Asked, Caller
from konverge.client.retry import Repeat
from konverge.errors import UnknownKind
from konverge.objects import Kind, Model, Scope, decode, field
from konverge.wire import Request

__all__ = ["Discovery", "Served"]

_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
_ASK_AGAIN_AFTER = 1.0


@dataclass(frozen=True)
class Served:
    """A kind that the server serves, with the other names it answers to and what it can do."""

    kind: Kind
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()


class _Subresource(Model):
    subresource: str = ""


class _ResponseKind(Model):
    kind: str = ""


class _Resource(Model):
    resource: str = ""
    scope: str = ""
    singular_resource: str = ""
    response_kind: _ResponseKind = field(default_factory=_ResponseKind)
    short_names: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)
    subresources: list[_Subresource] = field(default_factory=list)


class _Version(Model):
    version: str = ""
    resources: list[_Resource] = field(default_factory=list)


class _GroupMeta(Model):
    name: str = ""


class _Group(Model):
    metadata: _GroupMeta = field(default_factory=_GroupMeta)
    versions: list[_Version] = field(default_factory=list)


class _Groups(Model):
    kind: str = ""
    items: list[_Group] = field(default_factory=list)


class _LegacyResource(Model):
    name: str = ""
    kind: str = ""
    singular_name: str = ""
    namespaced: bool = False
    short_names: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)


class _LegacyResources(Model):
    resources: list[_LegacyResource] = field(default_factory=list)


class _LegacyVersion(Model):
    group_version: str = ""
    version: str = ""


class _LegacyGroup(Model):
    name: str = ""
    versions: list[_LegacyVersion] = field(default_factory=list)


class _LegacyGroups(Model):
    versions: list[str] = field(default_factory=list)
    groups: list[_LegacyGroup] = field(default_factory=list)


_Fits: TypeAlias = Callable[[Served], bool]


class Discovery:
    """The server's kinds, remembered.

    Promises: nothing is asked before the first question; a kind that is not known is asked for again before
    `UnknownKind` is raised, a second after the last time at the earliest; many questions at once cause one request.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._served: list[Served] | None = None
        self._asked_at = float("-inf")
        # Held across the requests of a refresh, so that many unknown kinds at once cause one.
        self._refreshing = asyncio.Lock()

    async def served(self) -> list[Served]:
        """Give all kinds that the server serves, groups in the server's order, preferred versions first."""
        if self._served is None:
            await self.refresh()
        return list(self._served or ())

    async def kind(self, api_version: str, kind: str) -> Kind:
        """Find a kind by its apiVersion and kind.

        Raises: UnknownKind when the server does not serve it.
        """
        return await self._find(
            f"{kind}.{api_version}" if api_version else kind,
            lambda served: served.kind.api_version == api_version and served.kind.kind == kind,
        )

    async def named(self, name: str) -> Kind:
        """Find a kind by a name that people write, as kubectl does; the preferred version unless one is named.

        Raises: UnknownKind when the server serves nothing of that name.
        """
        resource, _, rest = name.lower().partition(".")
        return await self._find(name, lambda served: resource in _names(served) and _in_group(served.kind, rest))

    async def refresh(self) -> None:
        """Ask the server again."""
        asked_before = self._asked_at
        async with self._refreshing:
            if self._asked_at == asked_before:
                self._served = [served for root in ("/api", "/apis") for served in await self._ask(root)]
                self._asked_at = asyncio.get_running_loop().time()

    async def _find(self, name: str, fits: _Fits) -> Kind:
        for served in await self.served():
            if fits(served):
                return served.kind
        await asyncio.sleep(self._asked_at + _ASK_AGAIN_AFTER - asyncio.get_running_loop().time())
        await self.refresh()
        for served in self._served or ():
            if fits(served):
                return served.kind
        raise UnknownKind(f"the server serves no kind {name!r} (is its CRD installed?)")

    async def _ask(self, root: str) -> Iterable[Served]:
        body = await self._get(root, _ACCEPT)
        groups = decode(_Groups, body)
        if groups.kind == "APIGroupDiscoveryList":
            return _aggregated(groups)
        return await self._ask_legacy(decode(_LegacyGroups, body))

    async def _ask_legacy(self, groups: _LegacyGroups) -> list[Served]:
        named = [("", version, f"/api/{version}") for version in groups.versions]
        named += [(g.name, v.version, f"/apis/{v.group_version}") for g in groups.groups for v in g.versions]
        found: list[Served] = []
        for group, version, path in named:
            resources = decode(_LegacyResources, await self._get(path, "application/json"))
            found += _legacy(group, version, resources.resources)
        return found

    async def _get(self, path: str, accept: str) -> bytes:
        request = Request("GET", path, headers={"accept": accept}, timeout=30.0)
        return await self._caller.call(request, Asked("discover", path), repeat=Repeat.ANY)


def _aggregated(groups: _Groups) -> Iterable[Served]:
    for group in groups.items:
        for version in group.versions:
            for resource in version.resources:
                kind = Kind(
                    group.metadata.name,
                    version.version,
                    resource.response_kind.kind,
                    resource.resource,
                    Scope(resource.scope),
                )
                yield Served(
                    kind,
                    resource.singular_resource,
                    tuple(resource.short_names),
                    tuple(resource.categories),
                    tuple(resource.verbs),
                    tuple(sub.subresource for sub in resource.subresources),
                )


def _legacy(group: str, version: str, resources: list[_LegacyResource]) -> Iterable[Served]:
    subresources = [resource.name.split("/", 1) for resource in resources if "/" in resource.name]
    for resource in resources:
        if "/" in resource.name:
            continue
        scope = Scope.NAMESPACED if resource.namespaced else Scope.CLUSTER
        yield Served(
            Kind(group, version, resource.kind, resource.name, scope),
            resource.singular_name,
            tuple(resource.short_names),
            tuple(resource.categories),
            tuple(resource.verbs),
            tuple(sub for name, sub in subresources if name == resource.name),
        )


def _names(served: Served) -> set[str]:
    return {served.kind.plural, served.singular, served.kind.kind.lower(), *served.short_names} - {""}


def _in_group(kind: Kind, rest: str) -> bool:
    """Tell whether "apps", "v1.apps" or "" names the kind's group (and version)."""
    return rest in ("", kind.group, f"{kind.version}.{kind.group}".rstrip("."))
