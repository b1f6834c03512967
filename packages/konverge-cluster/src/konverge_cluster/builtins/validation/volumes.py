"""The volumes of pods."""

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
from konverge_cluster.builtins.validation.claims import claim_template
from konverge_cluster.builtins.validation.environment import VOLUME_FIELDS, field_reference, resource_reference
from konverge_cluster.builtins.validation.old_volumes import old_volume
from konverge_cluster.builtins.validation.values import (
    Problems,
    backsteps,
    chosen_from,
    dns_label,
    dns_subdomain,
    file_mode,
    unreserved_path,
)

__all__ = ["driver_name", "host_path", "nfs", "volumes"]

Volume = dict[str, Any]

# The order in which the server looks at them: the first is checked, the others are one too many.
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
# Two sources are misspelt when they are one too many.
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


def volumes(
    found: Iterable[Volume], path: str, *, pod_name: str = "", is_pod: bool = False
) -> tuple[dict[str, Volume], list[FieldError]]:
    """Check the volumes; return the sound ones by name, for the mounts to refer to."""
    sound: dict[str, Volume] = {}
    problems: list[FieldError] = []
    for index, volume in enumerate(found):
        where = f"{path}[{index}]"
        wrong = [*_source(volume, where, pod_name=pod_name, is_pod=is_pod)]
        if not volume["name"]:
            wrong.append(required(f"{where}.name"))
        else:
            wrong += dns_label(volume["name"], f"{where}.name")
        if volume["name"] in sound:
            wrong.append(duplicate(f"{where}.name", volume["name"]))
        problems += wrong
        if not wrong:
            sound[volume["name"]] = volume
    return sound, problems


def _source(volume: Volume, path: str, *, pod_name: str, is_pod: bool) -> Problems:
    present = [name for name in _SOURCES if name in volume]
    for at, name in enumerate(present):
        if at:
            yield forbidden(f"{path}.{_SPELT.get(name, name)}", _ONE_TYPE)
        elif name == "image" and is_pod and not volume["image"].get("reference"):
            yield required(f"{path}.image.reference")
            yield from _image(volume["image"], f"{path}.image")
        elif name in _CHECKS:
            yield from _CHECKS[name](volume[name], f"{path}.{name}")
        else:
            yield from old_volume(name, volume[name], path)
    if present[:1] == ["ephemeral"] and pod_name and volume["name"]:
        claim = f"{pod_name}-{volume['name']}"
        for text in dns_subdomain_errors(claim):
            yield invalid(f"{path}.name", volume["name"], f'PVC name "{claim}": {text}')


def _empty_dir(source: dict[str, Any], path: str) -> Problems:
    if "sizeLimit" in source and Quantity(source["sizeLimit"]) < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def host_path(source: dict[str, Any], path: str) -> Problems:
    if not source["path"]:
        yield required(f"{path}.path")
        return
    yield from backsteps(source["path"], f"{path}.path")
    if source.get("type", "") not in _HOST_PATH_TYPES:
        yield unsupported(f"{path}.type", source["type"], _HOST_PATH_TYPES)


def _secret(source: dict[str, Any], path: str) -> Problems:
    if not source.get("secretName"):
        yield required(f"{path}.secretName")
    yield from _keys(source, path)


def _config_map(source: dict[str, Any], path: str) -> Problems:
    if not source.get("name"):
        yield required(f"{path}.name")
    yield from _keys(source, path)


def _keys(source: dict[str, Any], path: str) -> Problems:
    yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for index, item in enumerate(source.get("items", ())):
        yield from _key(item, f"{path}.items[{index}]")


def _key(item: dict[str, Any], path: str) -> Problems:
    if not item["key"]:
        yield required(f"{path}.key")
    if not item["path"]:
        yield required(f"{path}.path")
    yield from unreserved_path(item["path"], f"{path}.path")
    yield from file_mode(item.get("mode"), f"{path}.mode")


def _claim(source: dict[str, Any], path: str) -> Problems:
    if not source["claimName"]:
        yield required(f"{path}.claimName")


def nfs(source: dict[str, Any], path: str) -> Problems:
    if not source["server"]:
        yield required(f"{path}.server")
    if not source["path"]:
        yield required(f"{path}.path")
    if not source["path"].startswith("/"):
        yield invalid(f"{path}.path", source["path"], "must be an absolute path")


def _downward(source: dict[str, Any], path: str) -> Problems:
    yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    # The server leaves the index out.
    for item in source.get("items", ()):
        yield from _downward_file(item, path)


def _downward_file(item: dict[str, Any], path: str) -> Problems:
    if not item["path"]:
        yield required(f"{path}.path")
    yield from unreserved_path(item["path"], f"{path}.path")
    if "fieldRef" in item:
        yield from field_reference(item["fieldRef"], VOLUME_FIELDS, f"{path}.fieldRef")
        if "resourceFieldRef" in item:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif "resourceFieldRef" in item:
        yield from resource_reference(item["resourceFieldRef"], f"{path}.resourceFieldRef", in_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from file_mode(item.get("mode"), f"{path}.mode")


def _projected(source: dict[str, Any], path: str) -> Problems:
    yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, inner in enumerate(source["sources"] or ()):
        where = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            if name in inner:
                yield from _projected_keys(inner[name], taken, path, f"{where}.{name}")
        if "downwardAPI" in inner:
            yield from _projected_downward(inner["downwardAPI"], taken, path, f"{where}.downwardAPI")
        if "serviceAccountToken" in inner:
            yield from _token(inner["serviceAccountToken"], path, f"{where}.serviceAccountToken")
        if len(inner) > 1:
            yield forbidden(where, "may not specify more than 1 volume type per source")


def _projected_keys(source: dict[str, Any], taken: set[str], whole: str, path: str) -> Problems:
    if not source.get("name"):
        yield required(f"{path}.name")
    for index, item in enumerate(source.get("items", ())):
        yield from _key(item, f"{path}.items[{index}]")
        yield from _take(item["path"], source.get("name", ""), taken, whole)


def _projected_downward(source: dict[str, Any], taken: set[str], whole: str, path: str) -> Problems:
    for item in source.get("items", ()):
        yield from _downward_file(item, path)
        yield from _take(item["path"], item["path"], taken, whole)


def _take(place: str, shown: str, taken: set[str], path: str) -> Problems:
    if place in taken:
        yield invalid(path, shown, "conflicting duplicate paths")
    if place:
        taken.add(place)


def _token(source: dict[str, Any], whole: str, path: str) -> Problems:
    seconds = source["expirationSeconds"]
    if seconds < _TEN_MINUTES:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > 1 << 32:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if not source["path"]:
        yield required(f"{whole}.path")
    else:
        yield from unreserved_path(source["path"], f"{whole}.path")


def _csi(source: dict[str, Any], path: str) -> Problems:
    yield from driver_name(source["driver"], f"{path}.driver")
    if "nodePublishSecretRef" in source:
        name = source["nodePublishSecretRef"].get("name", "")
        if not name:
            yield required(f"{path}.nodePublishSecretRef.name")
        else:
            yield from dns_subdomain(name, f"{path}.name")


def driver_name(name: str, path: str) -> Problems:
    if not name:
        yield required(path)
        return
    if len(name) > 63:
        yield too_long(path, 63)
    for text in dns_subdomain_errors(name.lower()):
        yield invalid(path, name, text)


def _ephemeral(source: dict[str, Any], path: str) -> Problems:
    if "volumeClaimTemplate" not in source:
        yield required(f"{path}.volumeClaimTemplate")
    else:
        yield from claim_template(source["volumeClaimTemplate"], f"{path}.volumeClaimTemplate")


def _image(source: dict[str, Any], path: str) -> Problems:
    return chosen_from(source["pullPolicy"], ("Always", "IfNotPresent", "Never"), f"{path}.pullPolicy")


_CHECKS: Final[dict[str, Callable[[dict[str, Any], str], Problems]]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "secret": _secret,
    "nfs": nfs,
    "persistentVolumeClaim": _claim,
    "downwardAPI": _downward,
    "configMap": _config_map,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
