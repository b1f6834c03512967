"""When certificates are renewed: the decisions alone, over years, without a server."""

from __future__ import annotations

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.certificates import CLIENT, SERVER
from konverge.webhooks import RotationPolicy, service_hosts
from konverge.webhooks.authorities import (
    KeyPair,
    make_authority,
    read_key_pair,
    sign_serving,
    split_bundle,
)
from konverge.webhooks.rotation import Action, CertificateState, apply_actions, next_rotation, select_actions

HOSTS = service_hosts("webapp", "shop")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = RotationPolicy()


def step(
    state: CertificateState, now: datetime, policy: RotationPolicy = POLICY
) -> tuple[tuple[Action, ...], CertificateState]:
    actions = select_actions(state, frozenset(HOSTS), now, policy)
    return actions, apply_actions(actions, state, HOSTS, now=now, policy=policy)


def started(now: datetime = START, policy: RotationPolicy = POLICY) -> CertificateState:
    return step(CertificateState(), now, policy)[1]


class RotationHistory:
    """Runs the checks of a leader and records since when each authority is trusted."""

    def __init__(self, policy: RotationPolicy = POLICY) -> None:
        self.policy = policy
        self.state = CertificateState()
        self.trusted: dict[bytes, datetime] = {}
        self.done: list[tuple[datetime, Action]] = []

    def check(self, now: datetime) -> None:
        before = {text for text, expires in split_bundle(self.state.bundle) if expires > now}
        serving = self.state.serving
        actions, self.state = step(self.state, now, self.policy)
        self.done += [(now, action) for action in actions]
        after = {text for text, _ in split_bundle(self.state.bundle)}
        assert before <= after, "an authority was removed that is still in use"
        for text in after:
            self.trusted.setdefault(text, now)
        assert self.state.is_usable(frozenset(HOSTS), now)
        if Action.START_OVER not in actions and self.state.serving != serving:
            self._check_trust(now)

    def _check_trust(self, now: datetime) -> None:
        state = self.state
        assert state.serving is not None
        assert state.current is not None
        assert state.current.has_signed(state.serving)
        since = self.trusted[state.current.certificate]
        assert now - since >= self.policy.overlap or since == START, "used before API servers trust it"

    def count(self, action: Action) -> int:
        return sum(1 for _, each in self.done if each is action)


def test_a_certificate_is_accepted_from_clients_if_the_policy_says_so() -> None:
    for policy, expected in ((POLICY, [SERVER]), (replace(POLICY, for_clients=True), [SERVER, CLIENT])):
        state = apply_actions((Action.START_OVER,), CertificateState(), tuple(HOSTS), now=START, policy=policy)
        assert state.serving is not None
        loaded = x509.load_pem_x509_certificate(state.serving.certificate)
        assert list(loaded.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == expected


def test_ten_years_of_checks_keep_a_valid_certificate_at_all_times() -> None:
    history = RotationHistory()

    for day in range(0, 3650, 7):
        history.check(START + day * DAY)

    assert history.count(Action.START_OVER) == 1
    # An authority lives for two years and has a successor after sixteen months: seven successors in ten years.
    assert history.count(Action.ADD_AUTHORITY) == history.count(Action.PROMOTE) == 7
    # Ninety days, renewed after sixty.
    assert 50 <= history.count(Action.RENEW) + history.count(Action.PROMOTE) <= 70
    assert len(split_bundle(history.state.bundle)) <= 3


@given(st.lists(st.integers(1, 29 * 24), min_size=5, max_size=40), st.integers(0, 5))
@settings(max_examples=25)
def test_checks_more_often_than_the_windows_never_start_over(hours: list[int], more: int) -> None:
    policy = RotationPolicy(authority=300 * DAY, serving=90 * DAY, overlap=timedelta(hours=more))
    history = RotationHistory(policy)
    now = START
    history.check(now)

    for pause in hours:
        now += timedelta(hours=pause)
        history.check(now)

    assert history.count(Action.START_OVER) == 1


@given(st.integers(0, 2000), st.integers(0, 2000))
@settings(max_examples=25)
def test_after_any_downtime_one_check_repairs_the_state(first: int, second: int) -> None:
    history = RotationHistory()

    for day in (0, first, first + second):
        history.check(START + day * DAY)
        assert history.state.is_usable(frozenset(HOSTS), START + day * DAY)


def test_most_checks_take_no_action() -> None:
    state = started()

    assert select_actions(state, frozenset(HOSTS), START + timedelta(days=59), POLICY) == ()


def test_nothing_is_due_before_the_next_rotation() -> None:
    state, now = started(), START
    for _ in range(60):
        moment = next_rotation(state, POLICY)
        assert moment is not None
        assert moment > now
        assert select_actions(state, frozenset(HOSTS), moment - timedelta(seconds=2), POLICY) == ()
        now = moment + timedelta(seconds=1)
        actions, state = step(state, now)
        assert actions

    assert now > START + timedelta(days=365 * 5)


def test_an_authority_is_trusted_before_it_signs_and_until_it_expires() -> None:
    state = started()
    first = state.current
    assert first is not None
    now = first.expires - POLICY.authority / 3

    actions, state = step(replace(state, serving=sign_serving(first, HOSTS, now=now, lifetime=POLICY.serving)), now)
    assert actions == (Action.ADD_AUTHORITY,)
    assert state.current == first
    assert state.next is not None
    assert [text for text, _ in split_bundle(state.bundle)] == [first.certificate, state.next.certificate]

    assert step(state, now + POLICY.overlap - timedelta(seconds=1))[0] == ()
    second = state.next
    actions, state = step(state, now + POLICY.overlap)
    assert actions == (Action.PROMOTE,)
    assert state.serving is not None
    assert second.has_signed(state.serving)
    assert not first.has_signed(state.serving)
    assert first.certificate in state.bundle

    _, state = step(state, first.expires - timedelta(seconds=1))
    assert first.certificate in state.bundle
    actions, state = step(state, first.expires)
    assert Action.DROP_EXPIRED in actions
    assert first.certificate not in state.bundle
    assert second.certificate in state.bundle


def test_another_host_is_a_new_certificate_of_the_same_authority() -> None:
    state = started()
    hosts = ("other.shop.svc", *HOSTS)

    actions = select_actions(state, frozenset(hosts), START, POLICY)
    after = apply_actions(actions, state, hosts, now=START, policy=POLICY)

    assert actions == (Action.RENEW,)
    assert after.bundle == state.bundle
    assert after.is_usable(frozenset(hosts), START)


def mixed(state: CertificateState) -> CertificateState:
    other = started()
    return replace(state, serving=other.serving)


@pytest.mark.parametrize(
    ("harmed", "expected"),
    [
        (lambda state: replace(state, serving=None), Action.RENEW),
        (mixed, Action.RENEW),
        (lambda state: replace(state, current=None), Action.START_OVER),
        (lambda _: CertificateState(), Action.START_OVER),
    ],
)
def test_whatever_is_lost_is_made_again(harmed: object, expected: Action) -> None:
    assert callable(harmed)
    state = harmed(started())

    actions, after = step(state, START)

    assert actions == (expected,)
    assert after.is_usable(frozenset(HOSTS), START)
    assert state.bundle in after.bundle


def test_starting_over_keeps_trusting_what_others_still_show() -> None:
    state = started()

    _, after = step(replace(state, current=None), START + DAY)

    assert state.bundle in after.bundle
    assert len(split_bundle(after.bundle)) == 2


@pytest.mark.parametrize(
    "times",
    [
        {"serving": timedelta(0)},
        {"serving": 300 * DAY},
        {"overlap": -DAY},
        {"overlap": 200 * DAY},
    ],
)
def test_lifetimes_that_contradict_each_other_are_rejected(times: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"of an authority's lifetime|of its authority's"):
        RotationPolicy(**times)


def test_certificates_are_what_strict_callers_accept() -> None:
    authority = make_authority("webapp", now=START, lifetime=DAY)
    serving = sign_serving(authority, [*HOSTS, "127.0.0.1", "::1"], now=START, lifetime=7 * DAY)

    assert serving.expires == authority.expires
    assert serving.hosts == {*HOSTS, "127.0.0.1", "::1"}
    read = x509.load_pem_x509_certificate(serving.certificate)
    assert read.not_valid_before_utc == START - timedelta(hours=1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.certificate.decode())
    assert context.get_ca_certs()[0]["serialNumber"]
    long = sign_serving(authority, [f"{'x' * 63}.{'y' * 63}.svc"], now=START, lifetime=DAY)
    assert len(long.hosts) == 1


def test_two_authorities_with_one_name_are_distinguished() -> None:
    one, other = (make_authority("webapp", now=START, lifetime=DAY) for _ in range(2))

    assert one.has_signed(sign_serving(one, HOSTS, now=START, lifetime=DAY))
    assert not other.has_signed(sign_serving(one, HOSTS, now=START, lifetime=DAY))
    subjects = {x509.load_pem_x509_certificate(each.certificate).subject for each in (one, other)}
    assert len(subjects) == 2


def test_a_pair_that_cannot_be_read_is_none() -> None:
    state = started()
    good = state.serving
    assert isinstance(good, KeyPair)
    assert state.current is not None

    assert read_key_pair(good.certificate, good.key) == good
    for certificate, key in (
        (b"", b""),
        (b"x", good.key),
        (good.certificate, b"x"),
        (good.certificate, state.current.key),
    ):
        assert read_key_pair(certificate, key) is None
    assert split_bundle(b"garbage") == []


def test_keys_do_not_show_themselves() -> None:
    assert "PRIVATE" not in repr(started())
