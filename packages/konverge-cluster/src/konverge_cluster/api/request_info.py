"""The attributes of a request for authorization, from its path, method and query alone (the real server's RequestInfo).

Nothing is looked up: a user without rights must not find out which resources are served.
"""

from __future__ import annotations

from typing import Final

from konverge.objects.fields import FieldSelector
from konverge.objects.names import path_segment_errors
from konverge.wire.messages import Request
from konverge_cluster.api.authorization import Attributes, UserInfo
from konverge_cluster.api.options import Query
from konverge_cluster.api.routes import Route

__all__ = ["request_attributes"]

_VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_WITH_SELECTORS: Final = ("list", "watch", "deletecollection")


def request_attributes(request: Request, target: Route | None, user: UserInfo) -> Attributes:
    """Return the attributes of a request; `target` is its resource path, None for any other path."""
    if target is None:
        return Attributes(user, request.method.lower(), request.path, resource_request=False)
    query = Query(request.query)
    verb, name = "watch" if target.watch else _VERBS.get(request.method, ""), target.name
    if verb == "get" and not name:
        verb = "watch" if query.flag("watch") else "list"
        name = _selected_name(query)
    elif verb == "delete" and not name:
        verb = "deletecollection"
    selectors = verb in _WITH_SELECTORS and not target.watch
    return Attributes(
        user,
        verb,
        request.path,
        target.group,
        target.version,
        target.plural,
        target.subresource,
        # A Namespace is in itself, so that a role in a namespace can allow to read the Namespace.
        namespace=target.name if target.plural == "namespaces" and not target.namespace else target.namespace,
        name=name,
        field_selector=query.text("fieldSelector") if selectors else "",
        label_selector=query.text("labelSelector") if selectors else "",
    )


def _selected_name(query: Query) -> str:
    """Return the name that a field selector requires, so that rules for one name also apply to a list or a watch."""
    text = query.text("fieldSelector")
    if "metadata.name" not in text:
        return ""
    try:
        requirements = FieldSelector.parse(text).requirements
    except ValueError:
        return ""
    names = [each.value for each in requirements if each.field == "metadata.name" and each.equal]
    return names[0] if names and not path_segment_errors(names[0]) else ""
