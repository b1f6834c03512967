"""The type of the variable `request`."""

from __future__ import annotations

from functools import cache

from konverge_cluster.cel.types import BOOL, DYN, STRING, Type, list_of, map_of, struct

__all__ = ["request_type"]


@cache
def request_type() -> Type:
    """Return the type of `request`: AdmissionRequest without uid and objects, which have their own variables."""
    kind = struct("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), STRING))
    resource = struct("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), STRING))
    extra = map_of(STRING, list_of(STRING))
    user = {"username": STRING, "uid": STRING, "groups": list_of(STRING), "extra": extra}
    texts = ("name", "namespace", "operation", "subResource", "requestSubResource")
    fields: dict[str, Type] = {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "userInfo": struct("kubernetes.UserInfo", user),
        "dryRun": BOOL,
        "options": DYN,
        **dict.fromkeys(texts, STRING),
    }
    return struct("kubernetes.AdmissionRequest", fields)
