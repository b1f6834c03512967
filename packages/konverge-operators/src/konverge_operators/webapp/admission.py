"""What is asked before a WebApp is stored or deleted."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.webhooks import AdmissionRequest, Deny, mutating, validating
from konverge_operators.webapp.api import Resources, WebApp, WebAppSpec
from konverge_operators.webapp.children import labels_of
from konverge_operators.webapp.rules import problems_of, repository_of

__all__ = ["PROTECTED", "check", "fill_in"]

PROTECTED = "example.com/protected"
"""With this annotation set to "true" a WebApp cannot be deleted."""

_MANY = 50
_REQUESTS = {"cpu": "100m", "memory": "128Mi"}
_CLEANERS = frozenset(
    {
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:kube-controller-manager",
    }
)


@validating(WebApp, operations=("CREATE", "UPDATE", "DELETE"))
def check(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> Iterator[Deny | str]:
    """Refuse what breaks a rule, what cannot be changed, and to delete what is protected; warn of what is risky."""
    if request.operation == "DELETE":
        yield from _deletion(app, request)
        return
    if app.metadata.deletion_timestamp is not None:
        return  # it goes: nothing about it may keep its finalizers from being taken off
    known = set(problems_of(old)) if old is not None else set()
    for problem in problems_of(app):
        # A rule that came later is no reason to refuse a change of something else.
        if problem not in known:
            yield Deny(problem.message, path=problem.path)
    if old is not None:
        yield from _unchangeable(app.spec, old.spec)
    yield from _risks(app.spec)


@mutating(WebApp)
def fill_in(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> None:  # noqa: ARG001
    """Label it as its parts are labelled, and give a new one that says nothing of resources modest ones."""
    if app.name:
        for name, value in labels_of(app).items():
            app.metadata.labels.setdefault(name, value)
    if old is None and app.spec.resources is None:
        app.spec.resources = Resources(requests=dict(_REQUESTS))


def _deletion(app: WebApp, request: AdmissionRequest) -> Iterator[Deny]:
    protected = app.metadata.annotations.get(PROTECTED) == "true"
    # Who deletes a namespace has decided on everything in it, and a namespace that cannot go helps nobody.
    if protected and request.user.name not in _CLEANERS:
        yield Deny(f"it is protected: remove the annotation {PROTECTED} first")


def _unchangeable(new: WebAppSpec, old: WebAppSpec) -> Iterator[Deny]:
    if repository_of(new.image) != repository_of(old.image):
        words = f"another application is another WebApp: only tag and digest of {repository_of(old.image)} can change"
        yield Deny(words, path=".spec.image")
    if new.port != old.port:
        yield Deny(f"the port cannot be changed, it is {old.port}", path=".spec.port")


def _risks(spec: WebAppSpec) -> Iterator[str]:
    if spec.replicas == 0:
        yield "with 0 replicas nothing serves"
    if spec.replicas > _MANY:
        yield f"{spec.replicas} replicas are many"
    scaling = spec.autoscaling
    if scaling is None:
        return
    if "cpu" not in (spec.resources or Resources()).requests:
        yield "autoscaling follows the use of the requested CPU, and none is requested"
    if not scaling.min_replicas <= spec.replicas <= scaling.max_replicas:
        yield "replicas is outside of the bounds of autoscaling, which decides"
