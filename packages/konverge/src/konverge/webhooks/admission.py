"""Admission webhooks as typed functions.

    @validating(WebApp, operations=("CREATE", "UPDATE"))
    def check_image(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> Iterator[Deny | str]:
        if ":" not in app.spec.image:
            yield Deny("an image needs a tag", path=".spec.image")

    @mutating(WebApp)
    def fill_in(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> None:
        app.metadata.labels.setdefault("app", app.name)

The function gets the object as it would be (of a DELETE: as it is), the object as it was (of an UPDATE, else None) and
the request; it may be `async def`. What it declares becomes a value, not an entry of a registry: `Webhooks` takes it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, Unpack

import msgspec

from konverge.errors import DecodeError
from konverge.objects import LabelSelector, Resource, decode, kind_of, whole
from konverge.objects.names import dns_label_errors
from konverge.webhooks.patches import json_patch
from konverge.webhooks.requests import AdmissionRequest, Deny, Operation
from konverge.webhooks.reviews import AdmissionCall, BadReview, Outcome, admission_answer, read_admission
from konverge.webhooks.runner import FunctionFailed, Runner

__all__ = [
    "AdmissionOptions",
    "AdmissionWebhook",
    "MutatingOptions",
    "MutatingWebhook",
    "ValidatingWebhook",
    "Verdict",
    "mutating",
    "validating",
]

T = TypeVar("T", bound=Resource)

Verdict: TypeAlias = Deny | str | Iterable[Deny | str] | None
"""What a validating function says: texts are warnings; one `Deny` is enough for a no."""

Validate: TypeAlias = Callable[[T, T | None, AdmissionRequest], Verdict | Awaitable[Verdict]]
Mutate: TypeAlias = Callable[[T, T | None, AdmissionRequest], T | Deny | Awaitable[T | Deny | None] | None]

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]

_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")
_OBJECT_KEPT: Final = ("", "status")
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
    """A function that is asked before objects of a kind are written.

    `name` tells several webhooks of one kind apart. `subresources` are those whose writes are looked at: "" is the
    object itself, "status" its status. `timeout` is in whole seconds. `match_conditions` are CEL expressions by name:
    all must hold, or the webhook is not called. `objects` selects by label.

    Promises:

    - whatever the function raises, the answer is a verdict: no, with a message that says nothing of the inside;
    - a function with `side_effects` is not called in a dry run: the write is allowed as it is;
    - an object that its class cannot read is denied with the path that does not fit.

    Raises: ValueError for options that the API server would not take.
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
            raise TypeError(f"a webhook takes a function, got {self.function!r:.100}")
        self._check_choices()
        if not (isinstance(self.timeout, int) and 1 <= self.timeout <= 30):
            raise ValueError(f"the timeout of a webhook is 1 to 30 whole seconds, got {self.timeout!r}")
        if self.name and dns_label_errors(self.name):
            raise ValueError(f"{self.name!r} is no name of a webhook: write lower case letters, digits and dashes")

    def __call__(self, obj: T, old: T | None, request: AdmissionRequest) -> Any:
        """Call the function as it was written: for tests."""
        return self.function(obj, old, request)

    @property
    def path(self) -> str:
        """Where the server answers for this webhook."""
        kind = kind_of(self.kind)
        steps = (self.verb, kind.group or "core", kind.version, kind.plural, self.name)
        return "/" + "/".join(step for step in steps if step)

    @property
    def full_name(self) -> str:
        """The name that the API server shows to writers: stable, and unique in a cluster."""
        kind = kind_of(self.kind)
        own = f"{self.verb}-{self.name}" if self.name else self.verb
        return f"{own}.{kind.version}.{kind.plural}.{kind.group or 'core'}"

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of its rule, as the API server writes them: `webapps`, `webapps/status`."""
        plural = kind_of(self.kind).plural
        return tuple(f"{plural}/{each}" if each else plural for each in self.subresources)

    async def answer(self, body: bytes, runner: Runner) -> Outcome:
        """Answer an AdmissionReview.

        Raises: BadReview when the body is no review of this kind.
        """
        call = read_admission(body)
        if isinstance(call, Outcome):
            return call
        self._check_kind(call)
        request = call.request()
        if request.dry_run and self.side_effects:
            return admission_answer(call.uid)
        try:
            obj, old = self._objects(call)
        except DecodeError as error:
            denial = Deny(f"{kind_of(self.kind).kind} {request.key}: {error}", code=422)
            return admission_answer(call.uid, denials=[denial])
        try:
            said = await runner.call(self.function, obj, old, request)
            return self._outcome(said, obj, request)
        except FunctionFailed as failed:
            return self._failed(failed.__cause__ or failed, request)
        except Exception as error:
            return self._failed(error, request)

    @abstractmethod
    def _outcome(self, said: Any, obj: T, request: AdmissionRequest) -> Outcome:
        """Turn what the function returned into an answer; a TypeError says what it should have returned."""

    def _verdict(self, denials: list[Deny], request: AdmissionRequest, warnings: list[str]) -> Outcome:
        kind = kind_of(self.kind)
        about = {"group": kind.group, "kind": kind.kind, "name": request.name}
        return admission_answer(request.uid, denials=denials, about=about, warnings=warnings)

    def _failed(self, error: BaseException, request: AdmissionRequest) -> Outcome:
        if isinstance(error, Deny):
            return self._verdict([error], request, request.warnings)
        facts = {"webhook": self.full_name, "key": str(request.key), "operation": request.operation, "uid": request.uid}
        _log.error("The function of a webhook failed; the write is denied", exc_info=error, extra=facts)
        text = f"the webhook failed; the log of the operator says why, for the request {request.uid}"
        return admission_answer(request.uid, denials=[Deny(text, code=500)], warnings=request.warnings)

    def _objects(self, call: AdmissionCall) -> tuple[T, T | None]:
        new, old = call.new, call.old
        if new is None:
            new, old = old, None
        if new is None:
            raise BadReview(400, "the review has no object")
        return decode(self.kind, new), None if old is None else decode(self.kind, old)

    def _check_kind(self, call: AdmissionCall) -> None:
        wanted = kind_of(self.kind)
        found = call.kind
        if (found.group, found.version, found.kind) != (wanted.group, wanted.version, wanted.kind):
            asked = f"{found.kind}.{found.group}/{found.version}"
            raise BadReview(400, f"the webhook {self.full_name} is about {wanted}, not about {asked:.200}")

    def _check_choices(self) -> None:
        for given, known, what in (
            (self.operations, self.possible, "operations"),
            (self.subresources, _OBJECT_KEPT, "subresources"),
        ):
            if not isinstance(given, tuple) or not given or not set(given) <= set(known):
                shown = ", ".join(map(repr, known))
                raise ValueError(f"{what} of {type(self).__name__} are a tuple of {shown}, got {given!r}")
        if self.failure_policy not in ("Fail", "Ignore"):
            raise ValueError(f"failure_policy is 'Fail' or 'Ignore', got {self.failure_policy!r}")


@dataclass(frozen=True)
class ValidatingWebhook(AdmissionWebhook[T]):
    """A function that says yes or no: see `Verdict`. Options as in `AdmissionWebhook`."""

    verb: ClassVar[str] = "validate"

    def _outcome(self, said: Any, obj: T, request: AdmissionRequest) -> Outcome:  # noqa: ARG002
        single = said is None or isinstance(said, str | Deny)
        told = [each for each in (said,) if each is not None] if single else list(said)
        for each in told:
            if not isinstance(each, str | Deny):
                raise TypeError(f"{self.full_name} returned {each!r:.100}: return Deny(...), warnings, or None")
        warnings = [*request.warnings, *(each for each in told if isinstance(each, str))]
        return self._verdict([each for each in told if isinstance(each, Deny)], request, warnings)


@dataclass(frozen=True)
class MutatingWebhook(AdmissionWebhook[T]):
    """A function that edits the object: it edits what it got, or returns an edited copy, or `Deny`.

    With `reinvoke` it is asked once more when a later webhook changed the object: what it does must be the same done
    twice. Options as in `AdmissionWebhook`.

    Promise: only what was edited is changed; fields that the class does not know stay as they are.
    """

    reinvoke: bool = field(default=False, kw_only=True)

    verb: ClassVar[str] = "mutate"
    possible: ClassVar[tuple[Operation, ...]] = ("CREATE", "UPDATE")

    def _outcome(self, said: Any, obj: T, request: AdmissionRequest) -> Outcome:
        if isinstance(said, Deny):
            return self._verdict([said], request, request.warnings)
        edited = obj if said is None else said
        if not isinstance(edited, self.kind) or edited.source is None or edited.source != obj.source:
            what = f"another {type(edited).__name__}"
            raise TypeError(f"{self.full_name} returned {what}: return the object it was given, a copy of it, or None")
        patch = json_patch(_plain.decode(edited.source), whole(edited))
        return admission_answer(request.uid, patch=patch, warnings=request.warnings)


def validating(kind: type[T], **options: Unpack[AdmissionOptions]) -> Callable[[Validate[T]], ValidatingWebhook[T]]:
    """Declare a function to be a validating webhook of a kind."""
    return lambda function: ValidatingWebhook(kind, function, **options)


def mutating(kind: type[T], **options: Unpack[MutatingOptions]) -> Callable[[Mutate[T]], MutatingWebhook[T]]:
    """Declare a function to be a mutating webhook of a kind."""
    return lambda function: MutatingWebhook(kind, function, **options)
