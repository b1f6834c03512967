"""When certificates are renewed: decided from the current certificates and the time only.

The life cycle of an authority:

1. *next*: created when the current one has a third of its lifetime left. API servers trust it too from then on; nothing
   is signed with it yet.
2. *current*: after the overlap, when every API server trusts it. The next serving certificate is signed with it.
3. *former*: its successor signs. It stays trusted until it expires, for replicas that still use certificates from it.

Rules, whenever and however often `select_actions` is called:

1. While it is called more often than the renewal windows, the serving certificate is always valid, and its authority
   has been trusted for the overlap before the certificate is used.
2. An authority that has not expired is never removed from the bundle.
3. Rotation is deterministic: two replicas that decide from the same state take the same actions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from konverge.webhooks.authorities import KeyPair, make_authority, sign_serving, split_bundle

__all__ = ["Action", "CertificateState", "RotationPolicy", "apply_actions", "next_rotation", "select_actions"]


class Action(StrEnum):
    """One action of a rotation; `select_actions` returns them in the order of execution."""

    START_OVER = "create an authority, trust it and sign with it at once"
    ADD_AUTHORITY = "create the next authority and trust it beside the current one"
    PROMOTE = "sign with the next authority from now on"
    RENEW = "sign a new serving certificate"
    DROP_EXPIRED = "remove expired authorities from the bundle"


@dataclass(frozen=True)
class RotationPolicy:
    """The lifetimes of certificates. Each is renewed when a third of its lifetime is left.

    `overlap` is how long an authority is trusted before it signs: the time that the slowest API server needs to notice
    a changed bundle. With `for_clients` the certificate is also accepted from clients: servers that connect to each
    other show it in both directions.

    Raises: ValueError for durations that contradict each other.
    """

    authority: timedelta = timedelta(days=730)
    serving: timedelta = timedelta(days=90)
    overlap: timedelta = timedelta(hours=1)
    for_clients: bool = False

    def __post_init__(self) -> None:
        if not timedelta(0) < self.serving <= self.authority / 3:
            raise ValueError("the lifetime of a serving certificate must be at most a third of its authority's")
        if not timedelta(0) <= self.overlap <= self.authority / 6:
            raise ValueError("the overlap must be at most a sixth of an authority's lifetime")

    def renew_authority_at(self, authority: KeyPair) -> datetime:
        """Return the time from which an authority needs a successor."""
        return authority.expires - self.authority / 3

    def renew_serving_at(self, serving: KeyPair) -> datetime:
        """Return the time from which a serving certificate needs a successor."""
        return serving.expires - (serving.expires - serving.created) / 3


@dataclass(frozen=True)
class CertificateState:
    """The content of the Secret: the trusted bundle, and the pairs. A pair that cannot be read is None."""

    bundle: bytes = b""
    current: KeyPair | None = None
    next: KeyPair | None = None
    serving: KeyPair | None = None

    def is_usable(self, hosts: frozenset[str], now: datetime) -> bool:
        """Report whether the serving certificate can be used: valid now, for these hosts, from a trusted authority."""
        serving = self.serving
        if serving is None or serving.expires <= now or not hosts <= serving.hosts:
            return False
        trusted = {text for text, expires in split_bundle(self.bundle) if expires > now}
        signers = [each for each in (self.current, self.next) if each is not None and each.certificate in trusted]
        return any(signer.has_signed(serving) for signer in signers)


def select_actions(
    state: CertificateState, hosts: frozenset[str], now: datetime, policy: RotationPolicy
) -> tuple[Action, ...]:
    """Return the actions that are due now; most of the time there are none."""
    actions: list[Action] = []
    signer = state.current if _is_valid(state.current, now) else None
    if signer is None and _is_valid(state.next, now):
        actions.append(Action.PROMOTE)
        signer = state.next
    elif signer is None:
        actions.append(Action.START_OVER)
    elif not _is_valid(state.next, now):
        if now >= policy.renew_authority_at(signer):
            actions.append(Action.ADD_AUTHORITY)
    elif state.next is not None and now >= state.next.created + policy.overlap:
        actions.append(Action.PROMOTE)
    if not actions or actions == [Action.ADD_AUTHORITY]:
        serving = state.serving
        if serving is None or not state.is_usable(hosts, now) or now >= policy.renew_serving_at(serving):
            actions.append(Action.RENEW)
    if any(expires <= now for _, expires in split_bundle(state.bundle)) and Action.START_OVER not in actions:
        actions.append(Action.DROP_EXPIRED)
    return tuple(actions)


def next_rotation(state: CertificateState, policy: RotationPolicy) -> datetime | None:
    """Return the next time at which an action is due, if the state does not change; None when one is due now."""
    if state.current is None or state.serving is None:
        return None
    times = [policy.renew_serving_at(state.serving), *(expires for _, expires in split_bundle(state.bundle))]
    if state.next is None:
        times.append(policy.renew_authority_at(state.current))
    else:
        times.append(state.next.created + policy.overlap)
    return min(times)


def apply_actions(
    actions: tuple[Action, ...],
    state: CertificateState,
    hosts: tuple[str, ...],
    *,
    now: datetime,
    policy: RotationPolicy,
) -> CertificateState:
    """Return the state after these actions; keys and certificates are created here."""
    for action in actions:
        state = _apply(action, state, hosts, now, policy)
    return state


def _apply(
    action: Action, state: CertificateState, hosts: tuple[str, ...], now: datetime, policy: RotationPolicy
) -> CertificateState:
    match action:
        case Action.START_OVER:
            authority = make_authority(hosts[0], now=now, lifetime=policy.authority)
            started = CertificateState(_without_expired(state.bundle, now) + authority.certificate, authority)
            return _apply(Action.RENEW, started, hosts, now, policy)
        case Action.ADD_AUTHORITY:
            authority = make_authority(hosts[0], now=now, lifetime=policy.authority)
            return replace(state, bundle=state.bundle + authority.certificate, next=authority)
        case Action.PROMOTE:
            return _apply(Action.RENEW, replace(state, current=state.next, next=None), hosts, now, policy)
        case Action.RENEW:
            assert state.current is not None
            lifetime, for_clients = policy.serving, policy.for_clients
            serving = sign_serving(state.current, hosts, now=now, lifetime=lifetime, for_clients=for_clients)
            return replace(state, serving=serving)
        case Action.DROP_EXPIRED:
            return replace(state, bundle=_without_expired(state.bundle, now))


def _is_valid(authority: KeyPair | None, now: datetime) -> bool:
    return authority is not None and authority.expires > now


def _without_expired(bundle: bytes, now: datetime) -> bytes:
    return b"".join(text for text, expires in split_bundle(bundle) if expires > now)
