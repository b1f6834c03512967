"""Admission webhooks as typed functions.

    @validating(WebApp, operations=("CREATE", "UPDATE"))
    def check_image(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> Iterator[Deny | str]:
        if ":" not in app.spec.image:
            yield Deny("an image needs a tag", path=".spec.image")

    @mutating(WebApp)
    def fill_in(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> None:
        app.metadata.labels.setdefault("app", app.name)

The function gets the new object (on DELETE: the stored one), the old object (on UPDATE, else None) and the request; it
may be `async def`. The decorator returns a value and registers nothing: pass it to `Webhooks`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, Unpack

import msgspec

from konverge.errors import DecodeError
from konverge.objects import LabelSelector, Resource, decode, full_object, kind_of
from konverge.objects.names import dns_label_errors
from konverge.schema import CustomResource, find_violations, root_schema
from konverge.schema.defaults import prune_and_default
from konverge.webhooks.patches import json_patch
from konverge.webhooks.requests import AdmissionRequest, Deny, Operation
from konverge.webhooks.reviews import AdmissionCall, BadReview, ReviewResponse, admission_response, read_admission
from konverge.webhooks.runner import FunctionFailed, Runner

__all__ = [
    "AdmissionOptions",
    "AdmissionWebhook",
    "MutatingOptions",
    "MutatingWebhook",
    "ValidatingWebhook",
    "ValidationResult",
    "mutating",
    "validating",
]

T = TypeVar("T", bound=Resource)

ValidationResult: TypeAlias = Deny | str | Iterable[Deny | str] | None
"""What a validating function returns: strings are warnings; one `Deny` denies the write."""

Validate: TypeAlias = Callable[[T, T | None, AdmissionRequest], ValidationResult | Awaitable[ValidationResult]]
Mutate: TypeAlias = Callable[[T, T | None, AdmissionRequest], T | Deny | Awaitable[T | Deny | None] | None]

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]

_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")
_SUBRESOURCES: Final = ("", "status")
_plain = msgspec.json.Decoder()
_log = logging.getLogger("konverge.webhooks")


class AdmissionOptions(TypedDict, total=False):
    """The options of `validating`: the fields of `ValidatingWebhook` with these names."""

    operations: tuple[Operation, ...]
    name: str
    subresources: tuple[str, ...]
    side_effects: bool
    timeout: int
    failure_policy: FailurePolicy
    match_conditions: Mapping[str, str]
    objects: LabelSelector | None


class MutatingOptions(AdmissionOptions, total=False):
    """The options of `mutating`."""

    reinvoke: bool


@dataclass(frozen=True)
class AdmissionWebhook(ABC, Generic[T]):
    """A function that is called before objects of a kind are written.

    `name` distinguishes several webhooks of one kind. `subresources` are those whose writes are reviewed: "" is the
    object itself, "status" its status. `timeout` is in whole seconds. `match_conditions` are CEL expressions by name:
    the webhook is called only if all are true. `objects` is a label selector.

    Promises:

    - an error of the function is a denial, with a message that contains nothing of the error;
    - a function with `side_effects` is not called in a dry run: the write is allowed unchanged;
    - an object that its class cannot decode is denied, with the path of the invalid field.

    Raises: ValueError for options that the API server would reject.
    """

    kind: type[T]
    function: Callable[..., Any]
    operations: tuple[Operation, ...] = field(default=("CREATE", "UPDATE"), kw_only=True)
    name: str = field(default="", kw_only=True)
    subresources: tuple[str, ...] = field(default=("",), kw_only=True)
    side_effects: bool = field(default=False, kw_only=True)
    timeout: int = field(default=10, kw_only=True)
    failure_policy: FailurePolicy = field(default="Fail", kw_only=True)
    match_conditions: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    objects: LabelSelector | None = field(default=None, kw_only=True)

    verb: ClassVar[str] = ""
    possible: ClassVar[tuple[Operation, ...]] = _ALL

    def __post_init__(self) -> None:
        kind_of(self.kind)
        if not callable(self.function):
            raise TypeError(f"a webhook needs a function, got {self.function!r:.100}")
        self._check_choices()
        if not (isinstance(self.timeout, int) and 1 <= self.timeout <= 30):
            raise ValueError(f"the timeout of a webhook is 1 to 30 whole seconds, got {self.timeout!r}")
        if self.name and dns_label_errors(self.name):
            raise ValueError(f"{self.name!r} is not a valid webhook name: use lower case letters, digits and dashes")

    def __call__(self, obj: T, old: T | None, request: AdmissionRequest) -> Any:
        """Call the function directly: for tests."""
        return self.function(obj, old, request)

    @property
    def path(self) -> str:
        """The path of this webhook on the server."""
        kind = kind_of(self.kind)
        steps = (self.verb, kind.group or "core", kind.version, kind.plural, self.name)
        return "/" + "/".join(step for step in steps if step)

    @property
    def full_name(self) -> str:
        """The name that the API server shows to clients: stable, and unique in a cluster."""
        kind = kind_of(self.kind)
        own = f"{self.verb}-{self.name}" if self.name else self.verb
        return f"{own}.{kind.version}.{kind.plural}.{kind.group or 'core'}"

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of its rule, in the notation of the API server: `webapps`, `webapps/status`."""
        plural = kind_of(self.kind).plural
        return tuple(f"{plural}/{each}" if each else plural for each in self.subresources)

    async def handle(self, body: bytes, runner: Runner) -> ReviewResponse:
        """Handle an AdmissionReview.

        Raises: BadReview when the body is not a review of this kind.
        """
        call = read_admission(body)
        if isinstance(call, ReviewResponse):
            return call
        self._check_kind(call)
        request = call.request()
        if request.dry_run and self.side_effects:
            return admission_response(call.uid)
        try:
            obj, old = self._objects(call)
        except DecodeError as error:
            return self._undecodable(call, request, error)
        try:
            result = await runner.call(self.function, obj, old, request)
            return self._response(result, obj, request)
        except FunctionFailed as failed:
            return self._failed(failed.__cause__ or failed, request)
        except Exception as error:
            return self._failed(error, request)

    @abstractmethod
    def _response(self, result: Any, obj: T, request: AdmissionRequest) -> ReviewResponse:
        """Turn the result of the function into a response; a TypeError says what to return instead."""

    def _decide(self, denied: list[Deny], request: AdmissionRequest, warnings: list[str]) -> ReviewResponse:
        kind = kind_of(self.kind)
        details = {"group": kind.group, "kind": kind.kind, "name": request.name}
        return admission_response(request.uid, denied=denied, details=details, warnings=warnings)

    def _failed(self, error: BaseException, request: AdmissionRequest) -> ReviewResponse:
        if isinstance(error, Deny):
            return self._decide([error], request, request.warnings)
        facts = {"webhook": self.full_name, "key": str(request.key), "operation": request.operation, "uid": request.uid}
        _log.error("webhook failed", exc_info=error, extra=facts)
        text = f"the webhook failed; see the log of the operator for the request {request.uid}"
        return admission_response(request.uid, denied=[Deny(text, code=500)], warnings=request.warnings)

    def _undecodable(self, call: AdmissionCall, request: AdmissionRequest, error: DecodeError) -> ReviewResponse:
        denial = Deny(f"{kind_of(self.kind).kind} {request.key}: {error}", code=422)
        return admission_response(call.uid, denied=[denial])

    def _objects(self, call: AdmissionCall) -> tuple[T, T | None]:
        new, old = call.new, call.old
        if new is None:
            new, old = old, None
        if new is None:
            raise BadReview(400, "the review has no object")
        return decode(self.kind, new), None if old is None else decode(self.kind, old)

    def _check_kind(self, call: AdmissionCall) -> None:
        expected = kind_of(self.kind)
        actual = call.kind
        if (actual.group, actual.version, actual.kind) != (expected.group, expected.version, expected.kind):
            text = f"{actual.kind}.{actual.group}/{actual.version}"
            raise BadReview(400, f"the webhook {self.full_name} is for {expected}, not for {text:.200}")

    def _check_choices(self) -> None:
        for values, allowed, option in (
            (self.operations, self.possible, "operations"),
            (self.subresources, _SUBRESOURCES, "subresources"),
        ):
            if not isinstance(values, tuple) or not values or not set(values) <= set(allowed):
                choices = ", ".join(map(repr, allowed))
                raise ValueError(f"{option} of {type(self).__name__} must be a tuple of {choices}, got {values!r}")
        if self.failure_policy not in ("Fail", "Ignore"):
            raise ValueError(f"failure_policy must be 'Fail' or 'Ignore', got {self.failure_policy!r}")


@dataclass(frozen=True)
class ValidatingWebhook(AdmissionWebhook[T]):
    """A function that allows or denies a write: see `ValidationResult`. Options as in `AdmissionWebhook`."""

    verb: ClassVar[str] = "validate"

    def _response(self, result: Any, obj: T, request: AdmissionRequest) -> ReviewResponse:  # noqa: ARG002
        if result is None:
            items: list[Any] = []
        else:
            items = [result] if isinstance(result, str | Deny) else list(result)
        for each in items:
            if not isinstance(each, str | Deny):
                raise TypeError(f"{self.full_name} returned {each!r:.100}: return Deny(...), warnings, or None")
        warnings = [*request.warnings, *(each for each in items if isinstance(each, str))]
        return self._decide([each for each in items if isinstance(each, Deny)], request, warnings)


@dataclass(frozen=True)
class MutatingWebhook(AdmissionWebhook[T]):
    """A function that edits the object: in place, or by returning an edited copy; or it returns `Deny`.

    With `reinvoke` it is called once more when a later webhook changed the object, so it must be idempotent. Options as
    in `AdmissionWebhook`.

    Promises: the patch contains only the edits; fields that the class does not know stay unchanged. A custom resource
    that violates its schema passes unchanged: the server refuses it next, with a message of its own.
    """

    reinvoke: bool = field(default=False, kw_only=True)

    verb: ClassVar[str] = "mutate"
    possible: ClassVar[tuple[Operation, ...]] = ("CREATE", "UPDATE")

    def _response(self, result: Any, obj: T, request: AdmissionRequest) -> ReviewResponse:
        if isinstance(result, Deny):
            return self._decide([result], request, request.warnings)
        edited = obj if result is None else result
        if not isinstance(edited, self.kind) or edited.source is None or edited.source != obj.source:
            text = f"another {type(edited).__name__}"
            raise TypeError(f"{self.full_name} returned {text}: return the object that it got, a copy of it, or None")
        patch = json_patch(_plain.decode(edited.source), full_object(edited))
        return admission_response(request.uid, patch=patch, warnings=request.warnings)

    def _undecodable(self, call: AdmissionCall, request: AdmissionRequest, error: DecodeError) -> ReviewResponse:
        if call.new is not None and issubclass(self.kind, CustomResource):
            schema = root_schema(self.kind)
            if find_violations(schema, prune_and_default(schema, _plain.decode(call.new))):
                return admission_response(call.uid)
        return super()._undecodable(call, request, error)


def validating(kind: type[T], **options: Unpack[AdmissionOptions]) -> Callable[[Validate[T]], ValidatingWebhook[T]]:
    """Declare a function as a validating webhook of a kind."""
    return lambda function: ValidatingWebhook(kind, function, **options)


def mutating(kind: type[T], **options: Unpack[MutatingOptions]) -> Callable[[Mutate[T]], MutatingWebhook[T]]:
    """Declare a function as a mutating webhook of a kind."""
    return lambda function: MutatingWebhook(kind, function, **options)
