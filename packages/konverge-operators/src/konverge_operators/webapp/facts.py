"""The facts about an application: what the phase depends on, read from the WebApp and its Deployment."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.k8s.apps.v1 import Deployment, DeploymentCondition
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.children import CONTAINER

__all__ = ["Facts", "facts_of", "image_to_run", "is_available", "needs_rollback"]

_NEW_REPLICA_SET_AVAILABLE = "NewReplicaSetAvailable"
_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that the phase depends on.

    `desired` to `available` are counts of the Deployment. `observed` says whether they refer to its current spec, and
    `new_replica_set_available` whether all pods of its newest ReplicaSet have been available once. `good_image` and
    `good_replicas` describe the application when it was last ready; `good_image` is "" if it never was. `failure` is a
    reason and a message. `progress_failure` and `replica_failure` are messages of the Deployment's conditions.
    """

    terminating: bool = False
    failure: tuple[str, str] | None = None
    image: str = ""
    observed: bool = False
    desired: int = 0
    replicas: int = 0
    updated: int = 0
    available: int = 0
    new_replica_set_available: bool = False
    progress_failure: str = ""
    replica_failure: str = ""
    good_image: str = ""
    good_replicas: int = 0

    @property
    def complete(self) -> bool:
        """Whether exactly the desired replicas exist, updated and available."""
        return self.observed and self.updated == self.replicas == self.available == self.desired


def image_to_run(app: WebApp) -> str:
    """Return the image for the pods: that of the spec, or the last good one if that of the spec was rolled back."""
    status = app.status
    rolled_back = app.spec.rollback and status.failed_image == app.spec.image and status.last_good_image
    return status.last_good_image if rolled_back else app.spec.image


def needs_rollback(app: WebApp, facts: Facts) -> bool:
    """Report whether the rollout has failed and there is a good image to roll back to."""
    good = app.status.last_good_image
    return bool(app.spec.rollback and facts.observed and facts.progress_failure and good and good != facts.image)


def facts_of(app: WebApp, deployment: Deployment) -> Facts:
    """Return the facts about an application whose children are applied."""
    status = deployment.status
    image = _image_of(deployment)
    failure = None
    if image != app.spec.image and image == image_to_run(app):
        message = f"{app.spec.image} did not become ready, {image} runs instead (set another image to continue)"
        failure = ("RolledBack", message)
    progressing = _condition(deployment, "Progressing")
    progress_reason = progressing.reason if progressing is not None else None
    replica_failure = _condition(deployment, "ReplicaFailure")
    return Facts(
        terminating=app.metadata.deletion_timestamp is not None,
        failure=failure,
        image=image,
        observed=(status.observed_generation or 0) >= (deployment.metadata.generation or 0),
        desired=deployment.spec.replicas if deployment.spec.replicas is not None else 1,
        replicas=status.replicas or 0,
        updated=status.updated_replicas or 0,
        available=status.available_replicas or 0,
        new_replica_set_available=progress_reason == _NEW_REPLICA_SET_AVAILABLE,
        progress_failure=_message(progressing) if progress_reason == _DEADLINE_EXCEEDED else "",
        replica_failure=_message(replica_failure) if _is_true(replica_failure) else "",
        good_image=app.status.last_good_image,
        good_replicas=app.status.ready_replicas,
    )


def is_available(deployment: Deployment) -> bool:
    """Report whether the Deployment has its minimum of available pods, according to its condition."""
    return _is_true(_condition(deployment, "Available"))


def _condition(deployment: Deployment, type_: str) -> DeploymentCondition | None:
    return next((condition for condition in deployment.status.conditions if condition.type == type_), None)


def _is_true(condition: DeploymentCondition | None) -> bool:
    return condition is not None and condition.status == "True"


def _message(condition: DeploymentCondition | None) -> str:
    return "" if condition is None else condition.message or condition.reason or condition.type


def _image_of(deployment: Deployment) -> str:
    containers = deployment.spec.template.spec.containers
    return next((container.image or "" for container in containers if container.name == CONTAINER), "")
