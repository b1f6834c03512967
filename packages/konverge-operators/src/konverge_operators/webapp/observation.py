"""From the Deployment to facts: what the operator sees of an application."""

from __future__ import annotations

from konverge.k8s.apps.v1 import Deployment, DeploymentCondition
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.children import CONTAINER
from konverge_operators.webapp.lifecycle import Facts

__all__ = ["facts_of", "image_to_run", "is_available", "rollback_wanted"]

_ROLLED_OUT = "NewReplicaSetAvailable"
_STUCK = "ProgressDeadlineExceeded"


def image_to_run(app: WebApp) -> str:
    """Give the image that the pods shall have: the one asked for, unless it failed and is to be rolled back."""
    status = app.status
    rolled_back = app.spec.rollback and status.failed_image == app.spec.image and status.last_good_image
    return status.last_good_image if rolled_back else app.spec.image


def rollback_wanted(app: WebApp, facts: Facts) -> bool:
    """Tell whether the roll-out has failed, and there is a good image to go back to."""
    good = app.status.last_good_image
    return bool(app.spec.rollback and facts.observed and facts.stuck and good and good != facts.image)


def facts_of(app: WebApp, deployment: Deployment) -> Facts:
    """Give the facts about an application whose parts are applied."""
    status = deployment.status
    image = _image_of(deployment)
    trouble = None
    if image != app.spec.image and image == image_to_run(app):
        words = f"{app.spec.image} did not become ready, {image} runs instead (set another image to go on)"
        trouble = ("RolledBack", words)
    progress = _condition(deployment, "Progressing")
    failure = _condition(deployment, "ReplicaFailure")
    return Facts(
        deleting=app.metadata.deletion_timestamp is not None,
        trouble=trouble,
        image=image,
        observed=(status.observed_generation or 0) >= (deployment.metadata.generation or 0),
        wanted=deployment.spec.replicas if deployment.spec.replicas is not None else 1,
        replicas=status.replicas or 0,
        updated=status.updated_replicas or 0,
        available=status.available_replicas or 0,
        rolled_out=progress is not None and progress.reason == _ROLLED_OUT,
        stuck=_words(progress) if progress is not None and progress.reason == _STUCK else "",
        refused=_words(failure) if failure is not None and failure.status == "True" else "",
        good_image=app.status.last_good_image,
        good_replicas=app.status.ready_replicas,
    )


def is_available(deployment: Deployment) -> bool:
    """Tell whether enough pods serve, as the Deployment sees it."""
    found = _condition(deployment, "Available")
    return found is not None and found.status == "True"


def _condition(deployment: Deployment, type_: str) -> DeploymentCondition | None:
    return next((one for one in deployment.status.conditions if one.type == type_), None)


def _words(condition: DeploymentCondition) -> str:
    return condition.message or condition.reason or condition.type


def _image_of(deployment: Deployment) -> str:
    pod = deployment.spec.template.spec
    containers = pod.containers if pod is not None else []
    return next((one.image or "" for one in containers if one.name == CONTAINER), "")
