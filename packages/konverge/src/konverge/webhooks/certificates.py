"""Where the server's certificate comes from: files that somebody else renews, or a Secret that this module looks after.

certificates = ManagedCertificates(client, Key("shop", "webapp-webhooks"), hosts=service_hosts("webapp", "shop"))
server.swap(await certificates.ensure())      # any replica, before anything is served
async with server, asyncio.TaskGroup() as tasks:
    tasks.create_task(follow(certificates, server.swap))     # every replica
    tasks.create_task(certificates.run())                    # the leader
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
from konverge.client.access.places import Place
from konverge.client.access.tls import CertificatePair
from konverge.errors import AlreadyExists, ConfigError, Conflict, KonvergeError, NotFound
from konverge.k8s.core.v1 import Secret
from konverge.objects import Key, ObjectMeta
from konverge.webhooks.authorities import Certified, certificates_in, read_certified
from konverge.webhooks.bundles import BundleTarget, inject_bundle
from konverge.webhooks.rotation import Action, Held, RotationPolicy, carried_out, due, plan

__all__ = ["CertificateFiles", "CertificateSource", "ManagedCertificates", "Right", "follow"]

RECHECK: Final = 10.0
"""Seconds between two looks at the certificate in use: files and Secrets change rarely, and with days to spare."""

HEAL: Final = 60.0
"""Seconds after which the leader looks again, whatever is due: a configuration may have been applied anew."""

_TRIES: Final = 10
_TYPE: Final = "kubernetes.io/tls"
_log = logging.getLogger("konverge.webhooks")


class Right(NamedTuple):
    """One permission that is needed: a verb on a resource, of one object unless it is created."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


class CertificateSource(Protocol):
    """Whoever knows the certificate of today."""

    async def load(self) -> CertificatePair: ...


class CertificateFiles:
    """A certificate that somebody else renews, as files: cert-manager, or a mounted Secret.

    Promise: what `load` gives is a pair. A writer that is half-way through is a ConfigError, and no harm: `follow`
    looks again.
    """

    def __init__(self, certificate: Path | str, key: Path | str) -> None:
        self._certificate = NamedFile(Path(certificate), Place("webhooks", "certificate"))
        self._key = NamedFile(Path(key), Place("webhooks", "key"))

    async def load(self) -> CertificatePair:
        """Read the files.

        Raises: ConfigError when they cannot be read or do not form a pair.
        """
        certificate, key = await asyncio.to_thread(lambda: (self._certificate.read(), self._key.read()))
        pair = CertificatePair(certificate, key)
        try:
            pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except ssl.SSLError as error:
            what = f"{self._certificate.path} and {self._key.path} do not form a pair ({error.reason})"
            raise self._certificate.place.error(what) from None
        return pair


class ManagedCertificates:
    """An authority and a serving certificate of our own, kept in a Secret.

    `hosts` are what the certificate is for: see `service_hosts`. `targets` are the webhook configurations and CRDs
    whose callers have to trust it. `policy` says how long certificates live. `clock` is the wall clock.

    Promises:

    - however many replicas call `ensure` at once, all end with the same certificate, and nothing good is replaced;
    - a certificate is shown only after its authority has been in the bundle for the overlap, unless there was none;
    - the targets are written only when their bundle differs, and nothing else of them is touched;
    - the Secret is written under the version that was read.

    Assumes: the client may do what `rights` lists, whoever leads: it is not behind the write guard. The clocks of
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

    def rights(self) -> tuple[Right, ...]:
        """Give what the client has to be allowed to do, and no more."""
        secret = [
            Right(verb, "", "secrets", self._secret.namespace, "" if verb == "create" else self._secret.name)
            for verb in ("get", "create", "patch")
        ]
        targets = [
            Right(verb, target.kind.group, target.kind.plural, "", target.name)
            for target in self._targets
            for verb in ("get", "patch")
        ]
        return (*secret, *targets)

    async def ensure(self) -> CertificatePair:
        """Give a certificate that can be shown, and see that callers trust it; make one if there is none.

        Raises: KonvergeError when the server does not let us.
        """
        for _ in range(_TRIES):
            try:
                secret, held = await self._read()
                if not held.is_usable(frozenset(self._hosts), self._clock()):
                    held = await self._act(secret, held)
                await self._inject(held)
                return _pair(held)
            except (AlreadyExists, Conflict):
                # Another replica was first: what it made is as good.
                continue
        return _give_up(self._secret)

    async def rotate(self) -> float:
        """Do what is due; give the seconds until it is worth a look again.

        Raises: KonvergeError when the server does not let us; what was not done is done the next time.
        """
        for _ in range(_TRIES):
            try:
                secret, held = await self._read()
                actions = self._plan(held)
                if Action.PROMOTE in actions:
                    # Whoever is about to see a certificate of the next authority has to trust it by now.
                    await self._inject(held)
                if actions:
                    held = await self._act(secret, held)
                await self._inject(held)
                return self._pause(held)
            except (AlreadyExists, Conflict):
                continue
        return _give_up(self._secret)

    async def load(self) -> CertificatePair:
        """Read the certificate of today.

        Raises: KonvergeError when it is not there or not readable.
        """
        return _pair((await self._read())[1])

    async def run(self) -> NoReturn:
        """Rotate for ever, when it is due; for the leader. What fails is logged and tried again."""
        while True:
            try:
                pause = await self.rotate()
            except KonvergeError as error:
                _log.warning("Certificates of webhooks could not be looked after", extra={"reason": str(error)})
                pause = RECHECK
            await asyncio.sleep(pause)

    def _plan(self, held: Held) -> tuple[Action, ...]:
        return plan(held, frozenset(self._hosts), self._clock(), self._policy)

    def _pause(self, held: Held) -> float:
        moment = due(held, self._policy)
        left = (moment - self._clock()).total_seconds() if moment is not None else 0.0
        return min(max(left, 1.0), HEAL)

    async def _read(self) -> tuple[Secret | None, Held]:
        try:
            secret = await self._client.get(Secret, self._secret)
        except NotFound:
            return None, Held()
        return secret, _held(secret)

    async def _act(self, secret: Secret | None, held: Held) -> Held:
        actions = self._plan(held)
        after = carried_out(actions, held, self._hosts, now=self._clock(), policy=self._policy)
        if secret is None:
            metadata = ObjectMeta(name=self._secret.name, namespace=self._secret.namespace)
            await self._client.create(Secret(metadata=metadata, type=_TYPE, data=_data(after)))
        else:
            kept = {name: value for name, value in secret.data.items() if name not in _PLACES}
            secret.data = {**kept, **_data(after)}
            await self._client.update(secret)
        facts = {"key": str(self._secret), "actions": [action.name for action in actions]}
        _log.info("Certificates of webhooks were renewed", extra=facts)
        return after

    async def _inject(self, held: Held) -> None:
        missing = await inject_bundle(self._client, held.bundle, self._targets)
        for target in missing:
            # It is told when it comes: the leader looks every minute.
            _log.debug("A webhook configuration is not there", extra={"kind": target.kind.kind, "key": target.name})


async def follow(
    source: CertificateSource, swap: Callable[[CertificatePair], None], *, every: float = RECHECK
) -> NoReturn:
    """Look for a new certificate for ever and swap it in; the one in use stays until a good one comes."""
    complaint = ""
    while True:
        await asyncio.sleep(every)
        try:
            swap(await source.load())
            complaint = ""
        except (KonvergeError, ValueError) as error:
            if str(error) != complaint:
                _log.warning("A certificate cannot be used, the last good one stays", extra={"reason": str(error)})
            complaint = str(error)


_PLACES: Final = ("ca.crt", "tls.crt", "tls.key", "signer.crt", "signer.key", "next.crt", "next.key")


def _data(held: Held) -> dict[str, bytes]:
    pairs = {"tls": held.serving, "signer": held.current, "next": held.next}
    data = {"ca.crt": held.bundle}
    for name, pair in pairs.items():
        if pair is not None:
            data |= {f"{name}.crt": pair.certificate, f"{name}.key": pair.key}
    return data


def _held(secret: Secret) -> Held:
    def pair(name: str) -> Certified | None:
        return read_certified(secret.data.get(f"{name}.crt", b""), secret.data.get(f"{name}.key", b""))

    current, next_, serving = pair("signer"), pair("next"), pair("tls")
    # In one form, and with the authorities that sign, whatever somebody did to the Secret.
    texts = [text for text, _ in certificates_in(secret.data.get("ca.crt", b""))]
    texts += [each.certificate for each in (current, next_) if each is not None]
    return Held(b"".join(dict.fromkeys(texts)), current, next_, serving)


def _pair(held: Held) -> CertificatePair:
    if held.serving is None:
        raise ConfigError("the Secret of the webhooks holds no certificate that can be used")
    return CertificatePair(held.serving.certificate, held.serving.key)


def _give_up(secret: Key) -> NoReturn:
    raise ConfigError(f"Secret {secret}: others write it all the time ({_TRIES} tries)")
