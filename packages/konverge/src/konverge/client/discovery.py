"""Discovery: the kinds that the server serves.

The first lookup requests the aggregated form (one request each for /api and /apis). An unknown kind leads to a new
request: a CRD may have been created since. Kinds are found by apiVersion and kind, or by a name as kubectl takes it:
"deployments.apps", "deployments", "deployment.apps", "deploy", "deployments.v1.apps".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from konverge.client.caller import Caller, RequestInfo
from konverge.client.retry import RetryMode
from konverge.errors import UnknownKind
from konverge.objects import Kind, Model, Scope, decode, field
from konverge.wire import Request

__all__ = ["ApiResource", "Discovery"]

_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
_MIN_REFRESH_INTERVAL = 1.0


class ApiResource(Struct, frozen=True):
    """A kind that the server serves, with its other names, verbs and subresources (metav1.APIResource)."""

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


_Match: TypeAlias = Callable[[ApiResource], bool]


class Discovery:
    """The kinds of the server, cached.

    Promises: no request is sent before the first lookup; before `UnknownKind` is raised the kinds are requested again,
    at most once a second; concurrent lookups share one request.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._resources: list[ApiResource] | None = None
        self._refreshed_at = float("-inf")
        # Held across the requests of a refresh, so that concurrent lookups of unknown kinds share one.
        self._refreshing = asyncio.Lock()

    async def resources(self) -> list[ApiResource]:
        """Return all kinds that the server serves, groups in the server's order, preferred versions first."""
        if self._resources is None:
            await self.refresh()
        return list(self._resources or ())

    async def kind(self, api_version: str, kind: str) -> Kind:
        """Find a kind by its apiVersion and kind.

        Raises: UnknownKind when the server does not serve it.
        """
        return await self._find(
            f"{kind}.{api_version}" if api_version else kind,
            lambda resource: resource.kind.api_version == api_version and resource.kind.kind == kind,
        )

    async def find(self, name: str) -> Kind:
        """Find a kind by a name as kubectl takes it; the preferred version unless the name contains one.

        Raises: UnknownKind when the server serves nothing of that name.
        """
        plural, _, group = name.lower().partition(".")
        return await self._find(name, lambda found: plural in _names(found) and _in_group(found.kind, group))

    async def refresh(self) -> None:
        """Request the kinds again."""
        refreshed_before = self._refreshed_at
        async with self._refreshing:
            if self._refreshed_at == refreshed_before:
                self._resources = [found for root in ("/api", "/apis") for found in await self._discover(root)]
                self._refreshed_at = asyncio.get_running_loop().time()

    async def _find(self, name: str, matches: _Match) -> Kind:
        for resource in await self.resources():
            if matches(resource):
                return resource.kind
        await asyncio.sleep(self._refreshed_at + _MIN_REFRESH_INTERVAL - asyncio.get_running_loop().time())
        await self.refresh()
        for resource in self._resources or ():
            if matches(resource):
                return resource.kind
        raise UnknownKind(f"discover {name}: the server does not serve this kind (is its CRD installed?)")

    async def _discover(self, root: str) -> Iterable[ApiResource]:
        body = await self._get(root, _ACCEPT)
        groups = decode(_Groups, body)
        if groups.kind == "APIGroupDiscoveryList":
            return _aggregated(groups)
        return await self._discover_legacy(decode(_LegacyGroups, body))

    async def _discover_legacy(self, groups: _LegacyGroups) -> list[ApiResource]:
        versions = [("", version, f"/api/{version}") for version in groups.versions]
        versions += [(g.name, v.version, f"/apis/{v.group_version}") for g in groups.groups for v in g.versions]
        found: list[ApiResource] = []
        for group, version, path in versions:
            resources = decode(_LegacyResources, await self._get(path, "application/json"))
            found += _legacy(group, version, resources.resources)
        return found

    async def _get(self, path: str, accept: str) -> bytes:
        request = Request("GET", path, headers={"accept": accept}, timeout=30.0)
        return await self._caller.call(request, RequestInfo("discover", path), retry=RetryMode.IDEMPOTENT)


def _aggregated(groups: _Groups) -> Iterable[ApiResource]:
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
                yield ApiResource(
                    kind,
                    resource.singular_resource,
                    tuple(resource.short_names),
                    tuple(resource.categories),
                    tuple(resource.verbs),
                    tuple(sub.subresource for sub in resource.subresources),
                )


def _legacy(group: str, version: str, resources: list[_LegacyResource]) -> Iterable[ApiResource]:
    subresources = [resource.name.split("/", 1) for resource in resources if "/" in resource.name]
    for resource in resources:
        if "/" in resource.name:
            continue
        scope = Scope.NAMESPACED if resource.namespaced else Scope.CLUSTER
        yield ApiResource(
            Kind(group, version, resource.kind, resource.name, scope),
            resource.singular_name,
            tuple(resource.short_names),
            tuple(resource.categories),
            tuple(resource.verbs),
            tuple(sub for name, sub in subresources if name == resource.name),
        )


def _names(resource: ApiResource) -> set[str]:
    return {resource.kind.plural, resource.singular, resource.kind.kind.lower(), *resource.short_names} - {""}


def _in_group(kind: Kind, group: str) -> bool:
    """Report whether "apps", "v1.apps" or "" is the kind's group (and version)."""
    return group in ("", kind.group, f"{kind.version}.{kind.group}".rstrip("."))
