"""Validation of ConfigMaps and Secrets."""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec

from konverge_cluster.api.bodies import BodyDecodeError, read_json
from konverge_cluster.api.field_errors import forbidden, invalid, required, too_long
from konverge_cluster.api.names import config_key_errors
from konverge_cluster.builtins.unmarshal_errors import json_type
from konverge_cluster.builtins.validation.values import FieldErrors, validate_immutable

__all__ = ["validate_config_map", "validate_config_map_update", "validate_secret", "validate_secret_update"]

_LIMIT: Final = 1024 * 1024
_FIXED: Final = "field is immutable when `immutable` is set"
_REDACTED: Final = "<secret contents redacted>"
_DOCKER_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"


def validate_config_map(new: dict[str, Any]) -> FieldErrors:
    texts, files = new.get("data", {}), new.get("binaryData", {})
    size = 0
    for key, value in texts.items():
        yield from _validate_key(key, "data")
        if key in files:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value) if value.isascii() else len(value.encode())
    for key, value in files.items():
        yield from _validate_key(key, "binaryData")
        size += _decoded_length(value)
    if size > _LIMIT:
        yield too_long("[]", _LIMIT)


def _validate_key(key: str, path: str) -> FieldErrors:
    for text in config_key_errors(key):
        yield invalid(f"{path}[{key}]", key, text)


def _decoded_length(value: str) -> int:
    return len(value) // 4 * 3 - value[-2:].count("=")


def validate_config_map_update(new: dict[str, Any], old: dict[str, Any]) -> FieldErrors:
    yield from _validate_immutable(new, old, ("data", "binaryData"))
    yield from validate_config_map(new)


def _validate_immutable(new: dict[str, Any], old: dict[str, Any], fields: tuple[str, ...]) -> FieldErrors:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FIXED)
    for field in fields:
        if new.get(field, {}) != old.get(field, {}):
            yield forbidden(field, _FIXED)


def validate_secret(new: dict[str, Any]) -> FieldErrors:
    data = new.get("data", {})
    for key in data:
        yield from _validate_key(key, "data")
    if sum(map(_decoded_length, data.values())) > _LIMIT:
        yield too_long("data", _LIMIT)
    kind = new["type"]
    if kind == "kubernetes.io/service-account-token":
        if not new["metadata"].get("annotations", {}).get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind in _DOCKER_KEYS:
        yield from _validate_docker_config(data, _DOCKER_KEYS[kind])
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            yield required("data[username]")
            yield required("data[password]")
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            yield required("data[ssh-privatekey]")
    elif kind == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                yield required(f"data[{key}]")


def _validate_docker_config(data: dict[str, str], key: str) -> FieldErrors:
    if key not in data:
        yield required(f"data[{key}]")
        return
    content = base64.b64decode(data[key])
    try:
        value, _ = read_json(content)
    except (BodyDecodeError, msgspec.DecodeError) as error:
        yield invalid(f"data[{key}]", _REDACTED, str(error))
        return
    if value is not None and not isinstance(value, dict):
        text = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
        yield invalid(f"data[{key}]", _REDACTED, text)


def validate_secret_update(new: dict[str, Any], old: dict[str, Any]) -> FieldErrors:
    yield from validate_immutable(new["type"], old["type"], "type")
    yield from _validate_immutable(new, old, ("data",))
    yield from validate_secret(new)
