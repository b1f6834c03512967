"""Discovery: the served resources, as one document for each group and version, and as the aggregated document.

The documents are built from the registry, once for each of its generations, so they are never stale: a resource that
can be used can be discovered.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from konverge.objects.kinds import api_version_of
from konverge.wire.messages import Request
from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import YAML
from konverge_cluster.api.cluster import encode
from konverge_cluster.api.negotiation import negotiate
from konverge_cluster.api.registry import Registry
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import ResourceInfo, Strategy
from konverge_cluster.api.views import to_yaml

__all__ = ["Discovery", "version_sort_key"]

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPTS_AGGREGATED: Final = re.compile(r"application/json\s*;[^,]*\bas=APIGroupDiscoveryList")
_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES: Final = {None: 2, "beta": 1, "alpha": 0}


def version_sort_key(version: str) -> tuple[int, int, int, str]:
    """Return a key that sorts versions by priority: v2, v1, v1beta2, v1beta1, v1alpha1, then the others."""
    matched = _VERSION.fullmatch(version)
    if matched is None:
        return (1, 0, 0, version)
    major, stage, minor = int(matched[1]), _STAGES[matched[2]], int(matched[3] or 0)
    return (-stage - 1, -major, -minor, "")


class Discovery:
    """The discovery endpoints of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._documents: dict[str, Any] = {}
        self._tags: dict[str, tuple[bytes, str]] = {}

    def handle(self, request: Request) -> Response | None:
        """Respond to a discovery path; return None for another path, or for a group that is not served."""
        path = request.path.rstrip("/")
        self._refresh()
        if path in ("/api", "/apis"):
            accept = request.headers.get("accept", "")
            if any("v=v2" in each and "v=v2beta" not in each for each in _ACCEPTS_AGGREGATED.findall(accept)):
                return self._aggregated(path, request)
        document = self._documents.get(path)
        if document is None:
            return None
        if request.method != "GET":
            raise status_errors.method_not_allowed()
        view = negotiate(request.headers.get("accept", ""))
        body = to_yaml(document) if view.media == YAML else encode(document) + b"\n"
        return Response(200, body, {"content-type": view.media})

    def _paths(self) -> dict[str, Any]:
        self._refresh()
        return self._documents

    @property
    def paths(self) -> list[str]:
        """Every path of discovery, for the root document."""
        return list(self._paths())

    def _refresh(self) -> None:
        if self._generation == self._registry.generation:
            return
        self._generation = self._registry.generation
        self._tags.clear()
        groups = self._groups()
        documents: dict[str, Any] = {"/api": {"kind": "APIVersions", "versions": [v for v, _ in groups.get("", [])]}}
        documents["/api"]["serverAddressByClientCIDRs"] = []
        groups_listed = []
        for group, versions in groups.items():
            root = f"/apis/{group}" if group else "/api"
            for version, strategies in versions:
                documents[f"{root}/{version}"] = _resource_list(group, version, strategies)
            if group:
                groups_listed.append(_group(group, [version for version, _ in versions]))
                documents[root] = {"kind": "APIGroup", "apiVersion": "v1", **groups_listed[-1]}
        documents["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups_listed}
        self._documents = documents

    def _groups(self) -> dict[str, list[tuple[str, list[Strategy]]]]:
        """Return groups with their versions by priority: built-in groups in their own order, then others by name."""
        found: dict[str, list[tuple[str, list[Strategy]]]] = {}
        for group, version in self._registry.versions():
            found.setdefault(group, []).append((version, self._registry.resources(group, version)))
        for versions in found.values():
            versions.sort(key=lambda each: version_sort_key(each[0]))
        custom = {group for group, versions in found.items() if all(_is_custom(each) for _, each in versions)}
        ordered = [group for group in found if group not in custom] + sorted(custom)
        return {group: found[group] for group in ordered}

    def _aggregated(self, path: str, request: Request) -> Response:
        if path not in self._tags:
            items = [_aggregated_group(*each) for each in self._groups().items() if bool(each[0]) == (path == "/apis")]
            document = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
            body = encode(document | {"items": items})
            self._tags[path] = (body + b"\n", f'"{hashlib.sha512(body).hexdigest().upper()}"')
        body, tag = self._tags[path]
        headers = {"etag": tag, "vary": "Accept", "cache-control": "public"}
        if request.headers.get("if-none-match") == tag:
            return Response(304, b"", headers)
        return Response(200, body, headers | {"content-type": AGGREGATED})


def _is_custom(strategies: list[Strategy]) -> bool:
    return all(strategy.custom for strategy in strategies)


def _group(group: str, versions: list[str]) -> dict[str, Any]:
    versions_listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": versions_listed, "preferredVersion": versions_listed[0]}


def _resource_list(group: str, version: str, strategies: list[Strategy]) -> dict[str, Any]:
    resources: list[dict[str, Any]] = []
    for strategy in sorted(strategies, key=lambda each: each.info.kind.plural):
        resources += _resources(strategy.info)
    document: dict[str, Any] = {"kind": "APIResourceList", "groupVersion": api_version_of(group, version)}
    if group:
        document["apiVersion"] = "v1"
    return document | {"resources": resources}


def _resources(info: ResourceInfo) -> list[dict[str, Any]]:
    kind = info.kind
    main: dict[str, Any] = {"name": kind.plural, "singularName": info.singular, "namespaced": kind.namespaced}
    main |= {"kind": kind.kind, "verbs": list(info.verbs)}
    optional = {"shortNames": list(info.short_names), "categories": list(info.categories)}
    main |= {name: value for name, value in optional.items() if value}
    if info.storage_version_hash:
        main["storageVersionHash"] = info.storage_version_hash
    resources = [main]
    for sub in info.subresources:
        each: dict[str, Any] = {"name": f"{kind.plural}/{sub.name}", "singularName": "", "namespaced": kind.namespaced}
        if sub.version:
            each |= {"group": sub.group, "version": sub.version} if sub.group else {"version": sub.version}
        resources.append(each | {"kind": sub.kind, "verbs": list(sub.verbs)})
    return resources


def _aggregated_group(group: str, versions: list[tuple[str, list[Strategy]]]) -> dict[str, Any]:
    versions_listed = [
        {
            "version": version,
            "resources": [
                _aggregated_resource(each) for each in sorted(strategies, key=lambda each: each.info.kind.plural)
            ],
            "freshness": "Current",
        }
        for version, strategies in versions
    ]
    return {"metadata": {"name": group} if group else {}, "versions": versions_listed}


def _aggregated_resource(strategy: Strategy) -> dict[str, Any]:
    info, kind = strategy.info, strategy.info.kind
    # For a built-in kind the real server omits group and version where they are those of the resource.
    own = {"group": kind.group, "version": kind.version} if strategy.custom else {"group": "", "version": ""}
    versions_listed: dict[str, Any] = {"resource": kind.plural, "responseKind": own | {"kind": kind.kind}}
    versions_listed |= {"scope": str(kind.scope), "singularResource": info.singular, "verbs": list(info.verbs)}
    optional: dict[str, list[Any]] = {"shortNames": list(info.short_names), "categories": list(info.categories)}
    optional["subresources"] = [
        {
            "subresource": sub.name,
            "responseKind": ({"group": sub.group, "version": sub.version} if sub.version else own) | {"kind": sub.kind},
            "verbs": list(sub.verbs),
        }
        for sub in info.subresources
    ]
    return versions_listed | {name: value for name, value in optional.items() if value}
