"""Sources of the server's certificate: files that another program renews, or a Secret that this module manages.

certificates = ManagedCertificates(client, Key("shop", "webapp-webhooks"), hosts=service_hosts("webapp", "shop"))
server.set_certificate(await certificates.ensure())      # any replica, before anything is served
async with server, asyncio.TaskGroup() as tasks:
    tasks.create_task(reload_certificates(certificates, server.set_certificate))     # every replica
    tasks.create_task(certificates.run())                                            # the leader
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, Protocol

from konverge.client import Client
from konverge.client.access.files import NamedFile
from konverge.client.access.locations import Location
from konverge.client.access.tls import CertificatePair
from konverge.errors import AlreadyExists, ConfigError, Conflict, KonvergeError, NotFound
from konverge.k8s.core.v1 import Secret
from konverge.objects import Key, ObjectMeta
from konverge.webhooks.authorities import KeyPair, read_key_pair, split_bundle
from konverge.webhooks.bundles import BundleTarget, inject_bundle
from konverge.webhooks.rotation import (
    Action,
    CertificateState,
    RotationPolicy,
    apply_actions,
    next_rotation,
    select_actions,
)

__all__ = [
    "CertificateFiles",
    "CertificateSource",
    "ManagedCertificates",
    "RequiredPermission",
    "reload_certificates",
]

RELOAD_INTERVAL: Final = 10.0
"""Seconds between two reads of the certificate in use: files and Secrets change rarely, days before they expire."""

RESYNC_INTERVAL: Final = 60.0
"""Seconds after which the leader checks again, whatever is due: a configuration may have been applied again."""

_ATTEMPTS: Final = 10
_TYPE: Final = "kubernetes.io/tls"
_log = logging.getLogger("konverge.webhooks")


class RequiredPermission(NamedTuple):
    """A required permission: a verb on a resource, for one object except with the verb create."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


class CertificateSource(Protocol):
    """A source of the current certificate."""

    async def load(self) -> CertificatePair: ...


class CertificateFiles:
    """A certificate in files that another program renews: cert-manager, or a mounted Secret.

    Promise: `load` returns a valid pair. Half-written files are a ConfigError, and `reload_certificates` retries.
    """

    def __init__(self, certificate: Path | str, key: Path | str) -> None:
        self._certificate = NamedFile(Path(certificate), Location("webhooks", "certificate"))
        self._key = NamedFile(Path(key), Location("webhooks", "key"))

    async def load(self) -> CertificatePair:
        """Read the files.

        Raises: ConfigError when they cannot be read or do not form a pair.
        """
        certificate, key = await asyncio.to_thread(lambda: (self._certificate.read(), self._key.read()))
        pair = CertificatePair(certificate, key)
        try:
            pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except ssl.SSLError as error:
            problem = f"{self._certificate.path} and {self._key.path} do not form a pair ({error.reason})"
            raise self._certificate.location.error(problem) from None
        return pair


class ManagedCertificates:
    """A certificate authority and a serving certificate of our own, stored in a Secret.

    `hosts` are the names in the certificate: see `service_hosts`. `targets` are the webhook configurations and CRDs
    that get the CA bundle. `policy` has the lifetimes of certificates. `clock` is the wall clock.

    Promises:

    - however many replicas call `ensure` at once, all get the same certificate, and no valid one is replaced;
    - a certificate is used only after its authority has been in the bundle for the overlap, unless there was none;
    - the targets are written only when their bundle differs, and only the bundle is changed;
    - the Secret is written with the resource version that was read.

    Assumes: the client has the permissions in `permissions`, also without the lease: it is not fenced. The clocks of
    replicas and API servers agree within an hour.
    """

    def __init__(
        self,
        client: Client,
        secret: Key,
        *,
        hosts: Iterable[str],
        targets: Iterable[BundleTarget] = (),
        policy: RotationPolicy | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._secret = secret
        self._hosts = tuple(hosts)
        self._targets = tuple(targets)
        self._policy = policy or RotationPolicy()
        self._clock = clock
        if not self._hosts:
            raise ValueError("a certificate needs hosts: write hosts=service_hosts(service, namespace)")

    def permissions(self) -> tuple[RequiredPermission, ...]:
        """Return the permissions that the client needs, and no more."""
        namespace, name = self._secret.namespace, self._secret.name
        secret = [
            RequiredPermission(verb, "", "secrets", namespace, "" if verb == "create" else name)
            for verb in ("get", "create", "patch")
        ]
        targets = [
            RequiredPermission(verb, target.kind.group, target.kind.plural, "", target.name)
            for target in self._targets
            for verb in ("get", "patch")
        ]
        return (*secret, *targets)

    async def ensure(self) -> CertificatePair:
        """Return a usable certificate, create one if there is none, and inject its CA bundle into the targets.

        Raises: KonvergeError when a request fails.
        """
        for _ in range(_ATTEMPTS):
            try:
                secret, state = await self._read()
                if not state.is_usable(frozenset(self._hosts), self._clock()):
                    state = await self._renew(secret, state)
                await self._inject(state)
                return _pair(state)
            except (AlreadyExists, Conflict):
                # Another replica was first: its certificate is used.
                continue
        return _raise_conflicts(self._secret)

    async def rotate(self) -> float:
        """Execute the due actions; return the seconds until the next check.

        Raises: KonvergeError when a request fails; the next call takes the remaining actions.
        """
        for _ in range(_ATTEMPTS):
            try:
                secret, state = await self._read()
                actions = self._plan(state)
                if Action.PROMOTE in actions:
                    # API servers must trust the next authority before they get a certificate that it signed.
                    await self._inject(state)
                if actions:
                    state = await self._renew(secret, state)
                await self._inject(state)
                return self._delay(state)
            except (AlreadyExists, Conflict):
                continue
        return _raise_conflicts(self._secret)

    async def load(self) -> CertificatePair:
        """Read the current certificate.

        Raises: KonvergeError when it does not exist or cannot be read.
        """
        return _pair((await self._read())[1])

    async def run(self) -> NoReturn:
        """Rotate for ever, when it is due; for the leader. Failures are logged and retried."""
        while True:
            try:
                delay = await self.rotate()
            except KonvergeError as error:
                _log.warning("certificate rotation failed", extra={"reason": str(error)})
                delay = RELOAD_INTERVAL
            await asyncio.sleep(delay)

    def _plan(self, state: CertificateState) -> tuple[Action, ...]:
        return select_actions(state, frozenset(self._hosts), self._clock(), self._policy)

    def _delay(self, state: CertificateState) -> float:
        due = next_rotation(state, self._policy)
        remaining = (due - self._clock()).total_seconds() if due is not None else 0.0
        return min(max(remaining, 1.0), RESYNC_INTERVAL)

    async def _read(self) -> tuple[Secret | None, CertificateState]:
        try:
            secret = await self._client.get(Secret, self._secret)
        except NotFound:
            return None, CertificateState()
        return secret, _state(secret)

    async def _renew(self, secret: Secret | None, state: CertificateState) -> CertificateState:
        actions = self._plan(state)
        renewed = apply_actions(actions, state, self._hosts, now=self._clock(), policy=self._policy)
        if secret is None:
            metadata = ObjectMeta(name=self._secret.name, namespace=self._secret.namespace)
            await self._client.create(Secret(metadata=metadata, type=_TYPE, data=_data(renewed)))
        else:
            others = {name: value for name, value in secret.data.items() if name not in _DATA_KEYS}
            secret.data = {**others, **_data(renewed)}
            await self._client.update(secret)
        facts = {"key": str(self._secret), "actions": [action.name for action in actions]}
        _log.info("certificate renewed", extra=facts)
        return renewed

    async def _inject(self, state: CertificateState) -> None:
        missing = await inject_bundle(self._client, state.bundle, self._targets)
        for target in missing:
            # It gets the bundle after it is created: the leader checks every minute.
            _log.debug("webhook configuration not found", extra={"kind": target.kind.kind, "key": target.name})


async def reload_certificates(
    source: CertificateSource, set_certificate: Callable[[CertificatePair], None], *, interval: float = RELOAD_INTERVAL
) -> NoReturn:
    """Load the certificate for ever and pass it to `set_certificate`; an invalid one leaves the last one in use."""
    last_error = ""
    while True:
        await asyncio.sleep(interval)
        try:
            set_certificate(await source.load())
            last_error = ""
        except (KonvergeError, ValueError) as error:
            if str(error) != last_error:
                _log.warning("certificate reload failed", extra={"reason": str(error)})
            last_error = str(error)


_DATA_KEYS: Final = ("ca.crt", "tls.crt", "tls.key", "signer.crt", "signer.key", "next.crt", "next.key")


def _data(state: CertificateState) -> dict[str, bytes]:
    pairs = {"tls": state.serving, "signer": state.current, "next": state.next}
    data = {"ca.crt": state.bundle}
    for name, pair in pairs.items():
        if pair is not None:
            data |= {f"{name}.crt": pair.certificate, f"{name}.key": pair.key}
    return data


def _state(secret: Secret) -> CertificateState:
    def pair(name: str) -> KeyPair | None:
        return read_key_pair(secret.data.get(f"{name}.crt", b""), secret.data.get(f"{name}.key", b""))

    current, next_, serving = pair("signer"), pair("next"), pair("tls")
    # Normalized, and always with the signing authorities, even if the Secret was edited.
    texts = [text for text, _ in split_bundle(secret.data.get("ca.crt", b""))]
    texts += [each.certificate for each in (current, next_) if each is not None]
    return CertificateState(b"".join(dict.fromkeys(texts)), current, next_, serving)


def _pair(state: CertificateState) -> CertificatePair:
    if state.serving is None:
        raise ConfigError("the Secret of the webhooks has no usable certificate")
    return CertificatePair(state.serving.certificate, state.serving.key)


def _raise_conflicts(secret: Key) -> NoReturn:
    raise ConfigError(f"Secret {secret}: every write was a conflict ({_ATTEMPTS} attempts)")
