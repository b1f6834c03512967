"""Impersonation: a user acts as another one, named in the headers of the request.

There are two sets of rights. With the constrained ones a user needs `impersonate:<mode>` on what it impersonates and
`impersonate-on:<mode>:<verb>` on the request itself; the modes are associated-node, arbitrary-node, serviceaccount and
user-info. The legacy right is `impersonate`, whatever the request. One that allows everything is enough. A denial
reports the first right that is missing; the mode that was last allowed for the requesting user is tried first.

A header that occurs several times has its values joined by newlines, which no header value contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from konverge.objects.names import dns_subdomain_errors
from konverge_cluster.api import status_errors
from konverge_cluster.api.authorization import (
    ANONYMOUS_NAME,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Attributes,
    Authorizer,
    UserInfo,
    check_authorized,
    forbidden_error,
)
from konverge_cluster.api.field_errors import FieldError, invalid, quote
from konverge_cluster.api.service_account_names import service_account_groups, split_service_account_username
from konverge_cluster.api.status_errors import StatusError

__all__ = ["Impersonation", "requested_user"]

_USER: Final = "impersonate-user"
_UID: Final = "impersonate-uid"
_GROUP: Final = "impersonate-group"
_EXTRA: Final = "impersonate-extra-"
_GROUP_VERSION: Final = ("authentication.k8s.io", "v1")
_CORE: Final = ("", "v1")
_NODE_PREFIX: Final = "system:node:"
_NODE_NAME_KEY: Final = "authentication.kubernetes.io/node-name"
_PATH: Final = re.compile("[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+")
_MANY: Final = 4
"""From so many groups or extra values on, one check for all of them (`*`) comes first."""


def requested_user(headers: Mapping[str, str]) -> UserInfo | None:
    """Return the user that the headers of a request name, without defaults; None when there is none.

    Raises: StatusError 400 when there are groups, extra values or a uid, and no name.
    """
    named = [header for header in headers if header.startswith("impersonate-")]
    if not named:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for header in named:
        if header.startswith(_EXTRA):
            key = unquote(header.removeprefix(_EXTRA))
            extra[key] = (*extra.get(key, ()), *headers[header].split("\n"))
    groups = tuple(headers[_GROUP].split("\n")) if _GROUP in headers else ()
    name, uid = (headers.get(header, "").partition("\n")[0] for header in (_USER, _UID))
    if not name and (groups or extra or uid):
        text = f"requested {_go_syntax(uid, groups, extra)} without impersonating a user name"
        raise status_errors.bad_request(text)
    return UserInfo(name, groups, uid, extra) if name else None


def _go_syntax(uid: str, groups: Iterable[str], extra: Mapping[str, Iterable[str]]) -> str:
    """Print a user without a name as Go's %#v does."""
    maps = ", ".join(f"{quote(key)}:{_go_strings(extra[key])}" for key in sorted(extra))
    printed = f"map[string][]string{{{maps}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote(uid)}, Groups:{_go_strings(groups)}, Extra:{printed}}}'


def _go_strings(values: Iterable[str]) -> str:
    quoted = ", ".join(quote(value) for value in values)
    return f"[]string{{{quoted}}}" if quoted else "[]string(nil)"


class Impersonation:
    """Decides who may impersonate whom."""

    def __init__(self) -> None:
        self._last_modes: dict[str, _Mode] = {}

    def user(self, authorizer: Authorizer, requested: UserInfo, attributes: Attributes) -> UserInfo:
        """Return the user to act as; `attributes` are those of the request, with the requesting user.

        Raises: StatusError 403 when the requesting user may not act as that one.
        """
        caller = attributes.user
        last = self._last_modes.get(caller.name)
        modes = [mode for mode in _MODES if mode.applies(requested, caller)]
        first_error: StatusError | None = None
        for mode in sorted(modes, key=lambda mode: mode is not last):
            try:
                user = mode.check(authorizer, requested, attributes)
            except StatusError as error:
                first_error = first_error or error
                continue
            self._last_modes[caller.name] = mode
            return user
        assert first_error is not None
        raise first_error


@dataclass(frozen=True, slots=True)
class _Mode:
    """One way to be allowed to impersonate; the legacy one has no name."""

    name: str = ""

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    def applies(self, requested: UserInfo, caller: UserInfo) -> bool:
        """Report whether the mode is for this user."""
        node, account = _node_name(requested.name), split_service_account_username(requested.name)
        only_name = not (requested.uid or requested.groups or requested.extra)
        match self.name:
            case "associated-node":
                return only_name and bool(node) and _node_of(caller) == node
            case "arbitrary-node":
                return only_name and bool(node)
            case "serviceaccount":
                return only_name and account is not None
            case "user-info":
                return not node and account is None
        return True

    def check(self, authorizer: Authorizer, requested: UserInfo, attributes: Attributes) -> UserInfo:
        """Return the user with its default groups.

        Raises: StatusError 403 for the first right that is missing.
        """
        if self.name:
            on_request = replace(attributes, verb=f"impersonate-on:{self.name}:{attributes.verb}")
            check_authorized(authorizer, self._anonymized(on_request))
        caller = attributes.user
        check_authorized(authorizer, self._anonymized(self._name_check(caller, requested.name)))
        if requested.uid:
            check_authorized(authorizer, self._attributes(caller, _GROUP_VERSION, "uids", requested.uid))
        self._check_groups(authorizer, caller, requested.groups)
        self._check_extra(authorizer, caller, requested.extra)
        return _with_default_groups(requested, constrained=bool(self.name))

    def _attributes(self, user: UserInfo, group_version: tuple[str, str], resource: str, name: str = "") -> Attributes:
        group, version = group_version
        return Attributes(user, self.verb, group=group, version=version, resource=resource, name=name)

    @property
    def _name_group(self) -> tuple[str, str]:
        return _GROUP_VERSION if self.name else _CORE

    def _anonymized(self, attributes: Attributes) -> Attributes:
        """Return attributes for all nodes: a right to impersonate the associated node is the same on each node."""
        if self.name != "associated-node":
            return attributes
        keys = {"authentication.kubernetes.io/associated-node-keys": tuple(sorted(attributes.user.extra))}
        name = "*" if attributes.verb == self.verb else attributes.name
        return replace(attributes, user=replace(attributes.user, extra=keys), name=name)

    def _name_check(self, caller: UserInfo, name: str) -> Attributes:
        account = split_service_account_username(name)
        if account is not None:
            found = self._attributes(caller, self._name_group, "serviceaccounts", account[1])
            return replace(found, namespace=account[0])
        node = _node_name(name) if self.name else ""
        return self._attributes(caller, self._name_group, "nodes" if node else "users", node or name)

    def _check_groups(self, authorizer: Authorizer, caller: UserInfo, groups: tuple[str, ...]) -> None:
        asked = self._attributes(caller, self._name_group, "groups")
        if self.name and "" in groups:
            raise forbidden_error(asked, "impersonating the empty string group is not allowed")
        if self.name and "system:masters" in groups:
            masters = replace(asked, name="system:masters")
            raise forbidden_error(masters, "impersonating the system:masters group is not allowed")
        if self.name and len(groups) >= _MANY and authorizer.authorize(replace(asked, name="*")).allowed:
            return
        for group in groups:
            check_authorized(authorizer, replace(asked, name=group))

    def _check_extra(self, authorizer: Authorizer, caller: UserInfo, extra: Mapping[str, tuple[str, ...]]) -> None:
        asked = self._attributes(caller, _GROUP_VERSION, "userextras")
        if self.name:
            for text in _extra_errors(extra):
                raise forbidden_error(asked, text)
            everything = replace(asked, subresource="*", name="*")
            large = sum(map(len, extra.values())) >= _MANY
            if large and authorizer.authorize(everything).allowed:
                return
        for key, values in extra.items():
            for value in values:
                check_authorized(authorizer, replace(asked, subresource=key, name=value))


_MODES: Final = tuple(map(_Mode, ("associated-node", "arbitrary-node", "serviceaccount", "user-info", "")))


def _extra_errors(extra: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for key, values in extra.items():
        if not key:
            yield "impersonating the empty string key in extra is not allowed"
        texts = list(map(str, _key_errors(key)))
        if texts:
            listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            yield f"impersonating an invalid key in extra is not allowed: {listed}"
        if key != key.lower():
            yield f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def _key_errors(key: str) -> list[FieldError]:
    host, slash, path = key.partition("/")
    if not (slash and host and path):
        return [invalid("extra.key", key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid("extra.key", host, text) for text in dns_subdomain_errors(host)]
    if not _PATH.fullmatch(path):
        errors.append(invalid("extra.key", path, f"Invalid path (regex used for validation is '{_PATH.pattern}')"))
    return errors


def _node_name(username: str) -> str:
    name = username.removeprefix(_NODE_PREFIX)
    return name if username.startswith(_NODE_PREFIX) and not dns_subdomain_errors(name) else ""


def _node_of(caller: UserInfo) -> str:
    """Return the node of a service account whose token is bound to a pod or a node."""
    values = caller.extra.get(_NODE_NAME_KEY, ())
    is_account = split_service_account_username(caller.name) is not None
    return values[0] if is_account and len(values) == 1 else ""


def _with_default_groups(requested: UserInfo, *, constrained: bool) -> UserInfo:
    groups = requested.groups
    account = split_service_account_username(requested.name)
    if constrained and _node_name(requested.name):
        groups = ("system:nodes",)
    elif account is not None and not groups:
        groups = service_account_groups(account[0])
    if requested.name == ANONYMOUS_NAME:
        added = () if UNAUTHENTICATED in groups else (UNAUTHENTICATED,)
    else:
        added = () if {AUTHENTICATED, UNAUTHENTICATED} & set(groups) else (AUTHENTICATED,)
    return replace(requested, groups=(*groups, *added))
