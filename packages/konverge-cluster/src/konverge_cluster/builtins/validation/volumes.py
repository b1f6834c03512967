"""Validation of pod volumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from konverge.objects.names import dns_subdomain_errors
from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from konverge_cluster.builtins.validation.claims import validate_claim_template
from konverge_cluster.builtins.validation.environment import (
    VOLUME_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from konverge_cluster.builtins.validation.legacy_volumes import validate_legacy_volume
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_dns_label,
    validate_dns_subdomain,
    validate_enum,
    validate_file_mode,
    validate_no_backsteps,
    validate_volume_path,
)

__all__ = ["validate_driver_name", "validate_host_path", "validate_nfs", "validate_volumes"]

Volume = dict[str, Any]

# In the order of the real server: the first source is validated, each other one is forbidden.
_SOURCES: Final = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
# The real server misspells these two sources in the error for additional sources.
_SPELT: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_ONE_TYPE: Final = "may not specify more than 1 volume type"
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_TEN_MINUTES: Final = 600


def validate_volumes(
    volumes: Iterable[Volume], path: str, *, pod_name: str = "", is_pod: bool = False
) -> tuple[dict[str, Volume], list[FieldError]]:
    """Validate the volumes; return the valid ones by name, which mounts can refer to, and the errors."""
    valid: dict[str, Volume] = {}
    errors: list[FieldError] = []
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        volume_errors = [*_validate_source(volume, where, pod_name=pod_name, is_pod=is_pod)]
        if not volume["name"]:
            volume_errors.append(required(f"{where}.name"))
        else:
            volume_errors += validate_dns_label(volume["name"], f"{where}.name")
        if volume["name"] in valid:
            volume_errors.append(duplicate(f"{where}.name", volume["name"]))
        errors += volume_errors
        if not volume_errors:
            valid[volume["name"]] = volume
    return valid, errors


def _validate_source(volume: Volume, path: str, *, pod_name: str, is_pod: bool) -> FieldErrors:
    present = [name for name in _SOURCES if name in volume]
    for at, name in enumerate(present):
        if at:
            yield forbidden(f"{path}.{_SPELT.get(name, name)}", _ONE_TYPE)
        elif name == "image" and is_pod and not volume["image"].get("reference"):
            yield required(f"{path}.image.reference")
            yield from _validate_image(volume["image"], f"{path}.image")
        elif name in _CHECKS:
            yield from _CHECKS[name](volume[name], f"{path}.{name}")
        else:
            yield from validate_legacy_volume(name, volume[name], path)
    if present[:1] == ["ephemeral"] and pod_name and volume["name"]:
        claim = f"{pod_name}-{volume['name']}"
        for text in dns_subdomain_errors(claim):
            yield invalid(f"{path}.name", volume["name"], f'PVC name "{claim}": {text}')


def _validate_empty_dir(source: dict[str, Any], path: str) -> FieldErrors:
    if "sizeLimit" in source and Quantity(source["sizeLimit"]) < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def validate_host_path(source: dict[str, Any], path: str) -> FieldErrors:
    if not source["path"]:
        yield required(f"{path}.path")
        return
    yield from validate_no_backsteps(source["path"], f"{path}.path")
    if source.get("type", "") not in _HOST_PATH_TYPES:
        yield unsupported(f"{path}.type", source["type"], _HOST_PATH_TYPES)


def _validate_secret(source: dict[str, Any], path: str) -> FieldErrors:
    if not source.get("secretName"):
        yield required(f"{path}.secretName")
    yield from _validate_keys(source, path)


def _validate_config_map(source: dict[str, Any], path: str) -> FieldErrors:
    if not source.get("name"):
        yield required(f"{path}.name")
    yield from _validate_keys(source, path)


def _validate_keys(source: dict[str, Any], path: str) -> FieldErrors:
    yield from validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for index, item in enumerate(source.get("items", ())):
        yield from _validate_key(item, f"{path}.items[{index}]")


def _validate_key(item: dict[str, Any], path: str) -> FieldErrors:
    if not item["key"]:
        yield required(f"{path}.key")
    if not item["path"]:
        yield required(f"{path}.path")
    yield from validate_volume_path(item["path"], f"{path}.path")
    yield from validate_file_mode(item.get("mode"), f"{path}.mode")


def _validate_claim(source: dict[str, Any], path: str) -> FieldErrors:
    if not source["claimName"]:
        yield required(f"{path}.claimName")


def validate_nfs(source: dict[str, Any], path: str) -> FieldErrors:
    if not source["server"]:
        yield required(f"{path}.server")
    if not source["path"]:
        yield required(f"{path}.path")
    if not source["path"].startswith("/"):
        yield invalid(f"{path}.path", source["path"], "must be an absolute path")


def _validate_downward(source: dict[str, Any], path: str) -> FieldErrors:
    yield from validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    # The real server omits the index.
    for item in source.get("items", ()):
        yield from _validate_downward_file(item, path)


def _validate_downward_file(item: dict[str, Any], path: str) -> FieldErrors:
    if not item["path"]:
        yield required(f"{path}.path")
    yield from validate_volume_path(item["path"], f"{path}.path")
    if "fieldRef" in item:
        yield from validate_field_reference(item["fieldRef"], VOLUME_FIELDS, f"{path}.fieldRef")
        if "resourceFieldRef" in item:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif "resourceFieldRef" in item:
        yield from validate_resource_reference(item["resourceFieldRef"], f"{path}.resourceFieldRef", in_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from validate_file_mode(item.get("mode"), f"{path}.mode")


def _validate_projected(source: dict[str, Any], path: str) -> FieldErrors:
    yield from validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    used_paths: set[str] = set()
    for index, inner in enumerate(source["sources"] or ()):
        where = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            if name in inner:
                yield from _validate_projected_keys(inner[name], used_paths, path, f"{where}.{name}")
        if "downwardAPI" in inner:
            yield from _validate_projected_downward(inner["downwardAPI"], used_paths, path, f"{where}.downwardAPI")
        if "serviceAccountToken" in inner:
            yield from _validate_token(inner["serviceAccountToken"], path, f"{where}.serviceAccountToken")
        if len(inner) > 1:
            yield forbidden(where, "may not specify more than 1 volume type per source")


def _validate_projected_keys(source: dict[str, Any], used_paths: set[str], parent: str, path: str) -> FieldErrors:
    if not source.get("name"):
        yield required(f"{path}.name")
    for index, item in enumerate(source.get("items", ())):
        yield from _validate_key(item, f"{path}.items[{index}]")
        yield from _validate_unique_path(item["path"], source.get("name", ""), used_paths, parent)


def _validate_projected_downward(source: dict[str, Any], used_paths: set[str], parent: str, path: str) -> FieldErrors:
    for item in source.get("items", ()):
        yield from _validate_downward_file(item, path)
        yield from _validate_unique_path(item["path"], item["path"], used_paths, parent)


def _validate_unique_path(file_path: str, value: str, used_paths: set[str], path: str) -> FieldErrors:
    if file_path in used_paths:
        yield invalid(path, value, "conflicting duplicate paths")
    if file_path:
        used_paths.add(file_path)


def _validate_token(source: dict[str, Any], parent: str, path: str) -> FieldErrors:
    seconds = source["expirationSeconds"]
    if seconds < _TEN_MINUTES:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > 1 << 32:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if not source["path"]:
        yield required(f"{parent}.path")
    else:
        yield from validate_volume_path(source["path"], f"{parent}.path")


def _validate_csi(source: dict[str, Any], path: str) -> FieldErrors:
    yield from validate_driver_name(source["driver"], f"{path}.driver")
    if "nodePublishSecretRef" in source:
        name = source["nodePublishSecretRef"].get("name", "")
        if not name:
            yield required(f"{path}.nodePublishSecretRef.name")
        else:
            yield from validate_dns_subdomain(name, f"{path}.name")


def validate_driver_name(name: str, path: str) -> FieldErrors:
    if not name:
        yield required(path)
        return
    if len(name) > 63:
        yield too_long(path, 63)
    for text in dns_subdomain_errors(name.lower()):
        yield invalid(path, name, text)


def _validate_ephemeral(source: dict[str, Any], path: str) -> FieldErrors:
    if "volumeClaimTemplate" not in source:
        yield required(f"{path}.volumeClaimTemplate")
    else:
        yield from validate_claim_template(source["volumeClaimTemplate"], f"{path}.volumeClaimTemplate")


def _validate_image(source: dict[str, Any], path: str) -> FieldErrors:
    return validate_enum(source["pullPolicy"], ("Always", "IfNotPresent", "Never"), f"{path}.pullPolicy")


_CHECKS: Final[dict[str, Callable[[dict[str, Any], str], FieldErrors]]] = {
    "emptyDir": _validate_empty_dir,
    "hostPath": validate_host_path,
    "secret": _validate_secret,
    "nfs": validate_nfs,
    "persistentVolumeClaim": _validate_claim,
    "downwardAPI": _validate_downward,
    "configMap": _validate_config_map,
    "projected": _validate_projected,
    "csi": _validate_csi,
    "ephemeral": _validate_ephemeral,
    "image": _validate_image,
}
