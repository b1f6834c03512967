"""What a WebApp must keep to beyond its schema.

One list of rules, used twice: the validating webhook refuses what breaks one, and the reconciler, which also meets what
no webhook has seen, reports it as an error that no retry will mend.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from konverge import Quantity
from konverge.objects.names import dns_subdomain_errors, rfc1035_label_errors
from konverge_operators.webapp.api import Autoscaling, Resources, WebApp

__all__ = ["MOST_REPLICAS", "Problem", "problems_of", "repository_of"]

MOST_REPLICAS = 100
_VARIABLE = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")


class Problem(NamedTuple):
    """A rule that is broken: where, and what a user can do."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.message}, at {self.path}"


def problems_of(app: WebApp) -> list[Problem]:
    """Give every rule that a WebApp breaks."""
    return [*_of_name(app.name), *_of_image(app.spec.image), *_of_size(app), *_of_parts(app)]


def repository_of(image: str) -> str:
    """Give an image without its tag and digest."""
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.partition(":")[0]


def _of_name(name: str) -> Iterator[Problem]:
    for error in rfc1035_label_errors(name):
        yield Problem(".metadata.name", f"the Service gets this name: {error}")


def _of_image(image: str) -> Iterator[Problem]:
    repository = repository_of(image)
    rest = image[len(repository) :]
    tag, _, digest = rest.removeprefix(":").partition("@")
    if not repository or any(character.isspace() for character in image):
        yield Problem(".spec.image", f"{image!r} is no image: write one such as nginx:1.25")
    elif not tag and not digest:
        yield Problem(".spec.image", "an image needs a tag: write one such as nginx:1.25")
    elif tag == "latest" and not digest:
        yield Problem(".spec.image", "the tag latest names another image every day: write a version")


def _of_size(app: WebApp) -> Iterator[Problem]:
    if app.spec.replicas > MOST_REPLICAS:
        yield Problem(".spec.replicas", f"{app.spec.replicas} replicas are more than the {MOST_REPLICAS} allowed")
    if app.spec.autoscaling is not None:
        yield from _of_autoscaling(app.spec.autoscaling)


def _of_autoscaling(scaling: Autoscaling) -> Iterator[Problem]:
    if scaling.max_replicas > MOST_REPLICAS:
        words = f"{scaling.max_replicas} replicas are more than the {MOST_REPLICAS} allowed"
        yield Problem(".spec.autoscaling.maxReplicas", words)
    if scaling.min_replicas > scaling.max_replicas:
        words = f"minReplicas {scaling.min_replicas} is above maxReplicas {scaling.max_replicas}"
        yield Problem(".spec.autoscaling.minReplicas", words)


def _of_parts(app: WebApp) -> Iterator[Problem]:
    for name in app.spec.env:
        if not _VARIABLE.fullmatch(name):
            words = f"{name!r} is no name of a variable: write letters, digits, dots, dashes and underscores"
            yield Problem(".spec.env", words)
    if app.spec.ingress is not None:
        host = app.spec.ingress.host.removeprefix("*.")
        for error in dns_subdomain_errors(host):
            yield Problem(".spec.ingress.host", error)
        if not app.spec.ingress.path.startswith("/"):
            yield Problem(".spec.ingress.path", "a path starts with a slash")
    if app.spec.resources is not None:
        yield from _of_resources(app.spec.resources)


def _of_resources(resources: Resources) -> Iterator[Problem]:
    amounts: dict[tuple[str, str], Quantity] = {}
    for part, wanted in (("requests", resources.requests), ("limits", resources.limits)):
        for name, text in wanted.items():
            path = f".spec.resources.{part}.{name}"
            try:
                amounts[part, name] = amount = Quantity(str(text))
                negative = amount < Quantity("0")
            except ValueError:
                yield Problem(path, f"{text!r} is no amount: write one such as 500m or 256Mi")
                amounts.pop((part, name), None)
                continue
            if negative:
                yield Problem(path, f"{text} is below zero")
    for name in resources.requests:
        low, high = amounts.get(("requests", name)), amounts.get(("limits", name))
        if low is not None and high is not None and high < low:
            yield Problem(f".spec.resources.requests.{name}", f"the request {low} is above the limit {high}")
