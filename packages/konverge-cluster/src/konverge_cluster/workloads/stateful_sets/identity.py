"""The identity of a pod of a StatefulSet: its name, labels and hostname, and the volumes of its claims."""

from __future__ import annotations

import copy
from typing import Final

from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume
from konverge.objects import ObjectMeta
from konverge_cluster.workloads.pods.templates import new_pod
from konverge_cluster.workloads.stateful_sets.ordinals import is_member, ordinal_of, pod_name

__all__ = [
    "POD_INDEX",
    "POD_NAME",
    "REVISION",
    "claim_name",
    "claims_of",
    "identity_matches",
    "new_stateful_pod",
    "revision_of",
    "set_identity",
    "set_volumes",
    "storage_matches",
]

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
REVISION: Final = "controller-revision-hash"


def new_stateful_pod(stateful_set: StatefulSet, template: PodTemplateSpec, ordinal: int, *, revision: str) -> Pod:
    """Return a new pod with an ordinal, from the template of a revision."""
    pod = new_pod(template, stateful_set)
    pod.metadata.name = pod_name(stateful_set, ordinal)
    pod.spec = copy.copy(pod.spec)
    set_identity(pod)
    pod.metadata.labels[REVISION] = revision
    pod.spec.hostname = pod.name
    pod.spec.subdomain = stateful_set.spec.service_name
    set_volumes(stateful_set, pod)
    return pod


def revision_of(pod: Pod) -> str:
    """Return the name of the revision that a pod was created from."""
    return pod.metadata.labels.get(REVISION, "")


def identity_matches(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Report whether name and labels of a pod identify it as a pod of a StatefulSet."""
    named = is_member(stateful_set, pod) and pod.name == pod_name(stateful_set, ordinal_of(pod))
    return named and pod.metadata.labels.get(POD_NAME) == pod.name


def set_identity(pod: Pod) -> None:
    """Set the labels that identify a pod."""
    pod.metadata.labels = {**pod.metadata.labels, POD_NAME: pod.name, POD_INDEX: str(ordinal_of(pod))}


def storage_matches(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Report whether a pod has the volume of each of its claims."""
    by_name = {volume.name: volume.persistent_volume_claim for volume in pod.spec.volumes}
    for template in stateful_set.spec.volume_claim_templates:
        source = by_name.get(template.name)
        if source is None or source.claim_name != claim_name(stateful_set, template, pod):
            return False
    return True


def set_volumes(stateful_set: StatefulSet, pod: Pod) -> None:
    """Set the volume of each claim of a pod; a volume of the template with the same name is replaced."""
    claims = {template.name: claim_name(stateful_set, template, pod) for template in _claim_templates(stateful_set)}
    volumes = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
        for name, claim in claims.items()
    ]
    pod.spec.volumes = volumes + [volume for volume in pod.spec.volumes if volume.name not in claims]


def claim_name(stateful_set: StatefulSet, template: PersistentVolumeClaim, pod: Pod) -> str:
    """Return the name of the claim of a pod for a claim template."""
    return f"{template.name}-{stateful_set.name}-{ordinal_of(pod)}"


def claims_of(stateful_set: StatefulSet, pod: Pod) -> list[PersistentVolumeClaim]:
    """Return the claims that a pod needs, from the claim templates, with the labels of the selector."""
    return [_claim(stateful_set, template, pod) for template in _claim_templates(stateful_set)]


def _claim(stateful_set: StatefulSet, template: PersistentVolumeClaim, pod: Pod) -> PersistentVolumeClaim:
    metadata = ObjectMeta(
        name=claim_name(stateful_set, template, pod),
        namespace=stateful_set.namespace,
        labels={**template.metadata.labels, **stateful_set.spec.selector.match_labels},
        annotations=dict(template.metadata.annotations),
        finalizers=list(template.metadata.finalizers),
        owner_references=list(template.metadata.owner_references),
    )
    return PersistentVolumeClaim(metadata=metadata, spec=template.spec)


def _claim_templates(stateful_set: StatefulSet) -> list[PersistentVolumeClaim]:
    return stateful_set.spec.volume_claim_templates
