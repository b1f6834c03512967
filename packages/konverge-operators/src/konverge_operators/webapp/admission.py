"""The admission webhooks of WebApp."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.webhooks import AdmissionRequest, Deny, mutating, validating
from konverge_operators.protection import PROTECTED, protection_of
from konverge_operators.webapp.api import Resources, WebApp, WebAppSpec
from konverge_operators.webapp.children import labels_of
from konverge_operators.webapp.rules import find_violations, repository_of

__all__ = ["check", "fill_in"]

_WARN_REPLICAS = 50
_DEFAULT_REQUESTS = {"cpu": "100m", "memory": "128Mi"}
_CLEANUP_USERS = frozenset(
    {
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:kube-controller-manager",
    }
)


@validating(WebApp, operations=("CREATE", "UPDATE", "DELETE"))
def check(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> Iterator[Deny | str]:
    """Deny violations of the rules, changes of immutable fields and deletion of protected objects; warn about risks."""
    if request.operation == "DELETE":
        yield from _check_deletion(app, request)
        return
    if app.metadata.deletion_timestamp is not None:
        return  # being deleted: no rule may prevent the removal of its finalizers
    known = frozenset(find_violations(old) if old is not None else ())
    for violation in find_violations(app):
        # A rule that was added later must not block changes of other fields.
        if violation not in known:
            yield Deny(violation.message, path=violation.path)
    if old is not None:
        yield from _check_immutable(app.spec, old.spec)
    yield from _warnings(app.spec)


@mutating(WebApp)
def fill_in(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> None:  # noqa: ARG001
    """Set the labels of the children on the WebApp, and default the resources of a new one."""
    if app.name:
        for name, value in labels_of(app).items():
            app.metadata.labels.setdefault(name, value)
    if old is None and app.spec.resources is None:
        app.spec.resources = Resources(requests=dict(_DEFAULT_REQUESTS))


def _check_deletion(app: WebApp, request: AdmissionRequest) -> Iterator[Deny]:
    # Deleting a namespace deletes everything in it. A denial here would leave the namespace terminating.
    if protection_of(app) and request.user.name not in _CLEANUP_USERS:
        yield Deny(f"the WebApp is protected: remove the annotation {PROTECTED} first")


def _check_immutable(new: WebAppSpec, old: WebAppSpec) -> Iterator[Deny]:
    repository = repository_of(old.image)
    if repository_of(new.image) != repository:
        message = (
            f"the image repository is immutable: change only tag or digest of {repository}, or create a new WebApp"
        )
        yield Deny(message, path=".spec.image")
    if new.port != old.port:
        yield Deny(f"the port is immutable, it is {old.port}: create a new WebApp", path=".spec.port")


def _warnings(spec: WebAppSpec) -> Iterator[str]:
    if spec.replicas == 0:
        yield "0 replicas: no pod serves requests"
    if spec.replicas > _WARN_REPLICAS:
        yield f"{spec.replicas} replicas are unusually many"
    scaling = spec.autoscaling
    if scaling is None:
        return
    if "cpu" not in (spec.resources or Resources()).requests:
        yield "autoscaling needs a CPU request, and none is set: set .spec.resources.requests.cpu"
    if not scaling.min_replicas <= spec.replicas <= scaling.max_replicas:
        yield "replicas is outside the bounds of autoscaling, which takes precedence"
