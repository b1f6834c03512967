"""The rules of a WebApp beyond its schema.

The rules are used twice. The validating webhook denies an object that violates one. The reconciler reports a violation
as a terminal error, because objects can bypass the webhook.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from konverge import Quantity
from konverge.objects.names import dns_subdomain_errors, rfc1035_label_errors
from konverge_operators.webapp.api import Autoscaling, Resources, WebApp

__all__ = ["Violation", "find_violations", "repository_of"]

_VARIABLE = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")


class Violation(NamedTuple):
    """A violation of a rule: the field, and what the user can do."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.message}, at {self.path}"


def find_violations(app: WebApp) -> list[Violation]:
    """Return every violation of a rule."""
    return [*_check_name(app.name), *_check_image(app.spec.image), *_check_options(app)]


def repository_of(image: str) -> str:
    """Return an image without its tag and digest."""
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.partition(":")[0]


def _check_name(name: str) -> Iterator[Violation]:
    for error in rfc1035_label_errors(name):
        yield Violation(".metadata.name", f"the Service has the same name: {error}")


def _check_image(image: str) -> Iterator[Violation]:
    repository = repository_of(image)
    rest = image[len(repository) :]
    tag, _, digest = rest.removeprefix(":").partition("@")
    if not repository or any(character.isspace() for character in image):
        yield Violation(".spec.image", f"{image!r} is not a valid image: use one such as nginx:1.25")
    elif not tag and not digest:
        yield Violation(".spec.image", "the image needs a tag: use one such as nginx:1.25")
    elif tag == "latest" and not digest:
        yield Violation(".spec.image", "the tag 'latest' is mutable: use a version tag")


def _check_autoscaling(scaling: Autoscaling) -> Iterator[Violation]:
    if scaling.min_replicas > scaling.max_replicas:
        message = f"minReplicas {scaling.min_replicas} is greater than maxReplicas {scaling.max_replicas}"
        yield Violation(".spec.autoscaling.minReplicas", message)


def _check_options(app: WebApp) -> Iterator[Violation]:
    for name in app.spec.env:
        if not _VARIABLE.fullmatch(name):
            message = f"{name!r} is not a valid variable name: use letters, digits, dots, dashes and underscores"
            yield Violation(".spec.env", message)
    if app.spec.ingress is not None:
        host = app.spec.ingress.host.removeprefix("*.")
        for error in dns_subdomain_errors(host):
            yield Violation(".spec.ingress.host", error)
        if not app.spec.ingress.path.startswith("/"):
            yield Violation(".spec.ingress.path", "the path must start with a slash")
    if app.spec.autoscaling is not None:
        yield from _check_autoscaling(app.spec.autoscaling)
    if app.spec.resources is not None:
        yield from _check_resources(app.spec.resources)


def _check_resources(resources: Resources) -> Iterator[Violation]:
    quantities: dict[tuple[str, str], Quantity] = {}
    for part, values in (("requests", resources.requests), ("limits", resources.limits)):
        for name, text in values.items():
            path = f".spec.resources.{part}.{name}"
            try:
                quantities[part, name] = quantity = Quantity(str(text))
                negative = quantity < Quantity("0")
            except ValueError:
                yield Violation(path, f"{text!r} is not a valid quantity: use one such as 500m or 256Mi")
                quantities.pop((part, name), None)
                continue
            if negative:
                yield Violation(path, f"{text} is negative")
    for name in resources.requests:
        request, limit = quantities.get(("requests", name)), quantities.get(("limits", name))
        if request is not None and limit is not None and limit < request:
            message = f"the request {request} is greater than the limit {limit}"
            yield Violation(f".spec.resources.requests.{name}", message)
