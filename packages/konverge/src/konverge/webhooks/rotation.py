"""When certificates are made anew: decided from what is held and the time, and nothing else.

The life of an authority:

1. *next*: made when the current one has a third of its life left. API servers are told to trust it too; nothing is
   signed with it yet.
2. *current*: after the overlap, when every API server trusts it. The next serving certificate is signed with it.
3. *former*: its successor signs. It stays trusted until it expires, for replicas that still show what it signed.

Rules that hold here, for any times at which anybody looks:

1. While looks come more often than the renewal windows, the serving certificate is always valid, and its authority has
   been trusted for the overlap before it is shown.
2. An authority that is not expired is never taken out of the bundle.
3. What is due twice is done once: two replicas that decide from the same state decide the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from konverge.webhooks.authorities import Certified, certificates_in, issue, make_authority

__all__ = ["Action", "Held", "RotationPolicy", "carried_out", "due", "plan"]


class Action(StrEnum):
    """One thing to do; `plan` gives them in the order in which they are done."""

    START_OVER = "make an authority, trust it and sign with it at once"
    ADD_AUTHORITY = "make the next authority and trust it beside the current one"
    PROMOTE = "sign with the next authority from now on"
    RENEW = "issue a new serving certificate"
    FORGET = "take expired authorities out of the bundle"


@dataclass(frozen=True)
class RotationPolicy:
    """How long certificates live. Each is renewed when a third of its life is left.

    `overlap` is how long an authority is trusted before it signs: as long as the slowest API server needs to notice.

    Raises: ValueError for times that do not fit together.
    """

    authority: timedelta = timedelta(days=730)
    serving: timedelta = timedelta(days=90)
    overlap: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.serving <= self.authority / 3:
            raise ValueError("a serving certificate lives for at most a third of its authority's life")
        if not timedelta(0) <= self.overlap <= self.authority / 6:
            raise ValueError("the overlap is at most a sixth of an authority's life")

    def renews_authority(self, authority: Certified) -> datetime:
        """Give the moment from which an authority needs a successor."""
        return authority.expires - self.authority / 3

    def renews_serving(self, serving: Certified) -> datetime:
        """Give the moment from which a serving certificate needs a successor."""
        return serving.expires - (serving.expires - serving.made) / 3


@dataclass(frozen=True)
class Held:
    """What is kept in the Secret: the bundle that is trusted, and the pairs. What cannot be read is None."""

    bundle: bytes = b""
    current: Certified | None = None
    next: Certified | None = None
    serving: Certified | None = None

    def is_usable(self, hosts: frozenset[str], now: datetime) -> bool:
        """Tell whether the serving certificate can be shown: valid now, for these hosts, by somebody trusted."""
        serving = self.serving
        if serving is None or serving.expires <= now or not hosts <= serving.hosts:
            return False
        trusted = {text for text, expires in certificates_in(self.bundle) if expires > now}
        signers = [each for each in (self.current, self.next) if each is not None and each.certificate in trusted]
        return any(signer.issued(serving) for signer in signers)


def plan(held: Held, hosts: frozenset[str], now: datetime, policy: RotationPolicy) -> tuple[Action, ...]:
    """Decide what is to be done now; nothing, most of the time."""
    actions: list[Action] = []
    signer = held.current if _alive(held.current, now) else None
    if signer is None and _alive(held.next, now):
        actions.append(Action.PROMOTE)
        signer = held.next
    elif signer is None:
        actions.append(Action.START_OVER)
    elif not _alive(held.next, now):
        if now >= policy.renews_authority(signer):
            actions.append(Action.ADD_AUTHORITY)
    elif held.next is not None and now >= held.next.made + policy.overlap:
        actions.append(Action.PROMOTE)
    if not actions or actions == [Action.ADD_AUTHORITY]:
        serving = held.serving
        if serving is None or not held.is_usable(hosts, now) or now >= policy.renews_serving(serving):
            actions.append(Action.RENEW)
    if any(expires <= now for _, expires in certificates_in(held.bundle)) and Action.START_OVER not in actions:
        actions.append(Action.FORGET)
    return tuple(actions)


def due(held: Held, policy: RotationPolicy) -> datetime | None:
    """Give the next moment at which there is something to do, if nobody touches what is held; None when it is now."""
    if held.current is None or held.serving is None:
        return None
    moments = [policy.renews_serving(held.serving), *(expires for _, expires in certificates_in(held.bundle))]
    if held.next is None:
        moments.append(policy.renews_authority(held.current))
    else:
        moments.append(held.next.made + policy.overlap)
    return min(moments)


def carried_out(
    actions: tuple[Action, ...], held: Held, hosts: tuple[str, ...], *, now: datetime, policy: RotationPolicy
) -> Held:
    """Give what is held after these actions; keys and certificates are made here."""
    for action in actions:
        held = _after(action, held, hosts, now, policy)
    return held


def _after(action: Action, held: Held, hosts: tuple[str, ...], now: datetime, policy: RotationPolicy) -> Held:
    match action:
        case Action.START_OVER:
            made = make_authority(hosts[0], now=now, lifetime=policy.authority)
            started = Held(_without_expired(held.bundle, now) + made.certificate, made)
            return _after(Action.RENEW, started, hosts, now, policy)
        case Action.ADD_AUTHORITY:
            made = make_authority(hosts[0], now=now, lifetime=policy.authority)
            return replace(held, bundle=held.bundle + made.certificate, next=made)
        case Action.PROMOTE:
            return _after(Action.RENEW, replace(held, current=held.next, next=None), hosts, now, policy)
        case Action.RENEW:
            assert held.current is not None
            return replace(held, serving=issue(held.current, hosts, now=now, lifetime=policy.serving))
        case Action.FORGET:
            return replace(held, bundle=_without_expired(held.bundle, now))


def _alive(authority: Certified | None, now: datetime) -> bool:
    return authority is not None and authority.expires > now


def _without_expired(bundle: bytes, now: datetime) -> bytes:
    return b"".join(text for text, expires in certificates_in(bundle) if expires > now)
