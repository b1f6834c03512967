"""Policy rules: which requests a rule of a role allows, and which rules cover others.

The matching is that of the real server. `*` stands for every verb, group, resource or path; `*/scale` for a subresource
of every resource; a path may end with `*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from konverge_cluster.api.authorization import Attributes
from konverge_cluster.api.field_errors import quote

__all__ = ["ALL_RESOURCES", "ALL_URLS", "Rule", "compact", "uncovered"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy rule of a Role or a ClusterRole. `names` limits it to objects with these names."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def read(cls, rule: dict[str, Any]) -> Rule:
        """Read a rule of a stored role."""
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(rule.get(field) or ()) for field in fields))

    def allows(self, attributes: Attributes) -> bool:
        """Report whether the rule allows a request."""
        if attributes.resource_request and self.names and attributes.name not in self.names:
            return False
        return self.allows_any_name(attributes)

    def allows_any_name(self, attributes: Attributes) -> bool:
        """Report whether the rule allows a request for one of its `names`, whatever name the request has."""
        if attributes.verb not in self.verbs and "*" not in self.verbs:
            return False
        if not attributes.resource_request:
            return any(_url_covers(url, attributes.path, everything=True) for url in self.urls)
        if attributes.group not in self.groups and "*" not in self.groups:
            return False
        return self._has_resource(attributes.resource, attributes.subresource)

    def _has_resource(self, resource: str, subresource: str) -> bool:
        if "*" in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources

    def covers(self, other: Rule) -> bool:
        """Report whether everything that `other`, one of `_split`, allows is allowed by this rule."""
        return (
            _has_all(self.verbs, other.verbs)
            and _has_all(self.groups, other.groups)
            and all(self._covers_resource(each) for each in other.resources)
            and all(any(_url_covers(url, each) for url in self.urls) for each in other.urls)
            and (not self.names or (bool(other.names) and set(other.names) <= set(self.names)))
        )

    def _covers_resource(self, resource: str) -> bool:
        if resource in self.resources or "*" in self.resources:
            return True
        _, separator, subresource = resource.partition("/")
        return bool(separator) and f"*/{subresource}" in self.resources

    def __str__(self) -> str:
        parts = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "NonResourceURLs": self.urls,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        texts = [f"{name}:[{' '.join(map(quote, values))}]" for name, values in parts.items() if values]
        return f"{{{', '.join(texts)}}}"


ALL_RESOURCES: Final = Rule(("*",), ("*",), ("*",))
ALL_URLS: Final = Rule(("*",), urls=("*",))


def _has_all(values: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return "*" in values or set(others) <= set(values)


def _url_covers(url: str, path: str, *, everything: bool = False) -> bool:
    if url == path or (everything and url == "*"):
        return True
    return url.endswith("*") and path.startswith(url.rstrip("*"))


def uncovered(needed: Iterable[Rule], owned: Iterable[Rule]) -> list[Rule]:
    """Return what `needed` allows and no rule of `owned` does: rules with one verb and one resource or path each."""
    owned = tuple(owned)
    return [part for rule in needed for part in _split(rule) if not any(each.covers(part) for each in owned)]


def _split(rule: Rule) -> Iterator[Rule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                single = Rule((verb,), (group,), (resource,))
                yield from [replace(single, names=(name,)) for name in rule.names] or [single]
    for url in rule.urls:
        for verb in rule.verbs:
            yield Rule((verb,), urls=(url,))


def compact(rules: Iterable[Rule]) -> list[Rule]:
    """Merge the verbs of rules for the same resource, of those with one group, one resource and at most one name.

    A verb of several rules occurs several times, as on the real server.
    """
    merged: dict[Rule, list[str]] = {}
    rest: list[Rule] = []
    for rule in rules:
        if rule.urls or len(rule.groups) != 1 or len(rule.resources) != 1 or len(rule.names) > 1:
            rest.append(rule)
            continue
        resource = Rule((), rule.groups, rule.resources, rule.names)
        merged.setdefault(resource, []).extend(rule.verbs)
    return rest + [Rule(tuple(verbs), each.groups, each.resources, each.names) for each, verbs in merged.items()]
