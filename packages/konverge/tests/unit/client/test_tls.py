"""TLS contexts: trusted authorities, client certificates, rotation. Handshakes are in memory."""

from __future__ import annotations

import datetime
import os
import ssl
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from konverge.client.access import tls as tls_module
from konverge.client.access.files import NamedFile, RotatingValue
from konverge.client.access.locations import Location
from konverge.client.access.tls import CertificatePair, Tls, check_authority, check_pair, pem_file
from konverge.errors import ConfigError
from konverge.testing.certificates import Authority, Pair

PLACE = Location("kubeconfig x", "users[0].user")


def pair_of(files: Pair) -> CertificatePair:
    return CertificatePair(files.cert.read_bytes(), files.key.read_bytes())


def serving(files: Pair, *, clients: Authority | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients.ca.cert)
    return context


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, *, name: str = "localhost") -> ssl.SSLObject:
    """Complete a handshake over two memory buffers and return the server's side of it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname=name),
    )
    waiting = list(sides)
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    return sides[0]


def seen_client(side: ssl.SSLObject) -> str:
    certificate = side.getpeercert()
    assert certificate
    return str(certificate["subject"][-1][0][1])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority", "test")


def test_a_server_of_the_authority_is_trusted_and_no_other(authority: Authority, tmp_path: Path) -> None:
    tls = Tls(ca=authority.ca.cert.read_bytes())
    stranger = Authority(tmp_path / "stranger", "test").sign("server", file="server", hosts=["localhost"])

    shake_hands(tls.context(), serving(authority.sign("server", file="server", hosts=["localhost"])))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tls.context(), serving(stranger))


def test_a_wrong_host_name_is_refused(authority: Authority) -> None:
    server = serving(authority.sign("localhost", file="server", hosts=["other.example"]))

    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(Tls(ca=authority.ca.cert.read_bytes()).context(), server)


def test_a_host_name_in_the_subject_does_not_count(authority: Authority) -> None:
    server = serving(authority.sign("localhost", file="server"))

    with pytest.raises(ssl.SSLError):
        shake_hands(Tls(ca=authority.ca.cert.read_bytes()).context(), server)


def test_without_an_authority_the_systems_own_are_trusted(authority: Authority) -> None:
    server = serving(authority.sign("server", file="server", hosts=["localhost"]))
    context = Tls().context()

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(context, server)


def test_insecure_trusts_every_server(authority: Authority) -> None:
    server = serving(authority.sign("server", file="server", hosts=["other.example"]))

    shake_hands(Tls(insecure=True).context(), server)


def test_insecure_with_an_authority_is_refused(authority: Authority) -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        Tls(ca=authority.ca.cert.read_bytes(), insecure=True)


def test_old_protocols_are_not_accepted() -> None:
    assert Tls().context().minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_client_certificate_identifies_us(authority: Authority) -> None:
    server = serving(authority.sign("server", file="server", hosts=["localhost"]), clients=authority)
    tls = Tls(ca=authority.ca.cert.read_bytes())

    me = shake_hands(tls.context(pair_of(authority.sign("me", file="me"))), server)
    you = shake_hands(tls.context(pair_of(authority.sign("you", file="you"))), server)

    assert (seen_client(me), seen_client(you)) == ("me", "you")


def test_the_context_is_the_same_until_the_pair_changes(authority: Authority) -> None:
    tls = Tls(ca=authority.ca.cert.read_bytes())
    me, you = pair_of(authority.sign("me", file="me")), pair_of(authority.sign("you", file="you"))

    first = tls.context(me)

    assert tls.context(me) is first
    assert tls.context(CertificatePair(me.certificate, me.key)) is first
    assert tls.context(you) is not first


def test_a_rotated_authority_file_makes_a_new_context(authority: Authority, tmp_path: Path) -> None:
    """The cluster changes its CA while we run: new connections trust the new one, and no longer the old one."""
    now = [0.0]
    path = tmp_path / "ca.crt"
    path.write_bytes(authority.ca.cert.read_bytes())
    make = partial(check_authority, location=PLACE)
    tls = Tls(ca=RotatingValue([NamedFile(path, PLACE)], make, clock=lambda: now[0], reload_interval=10))
    old_server = serving(authority.sign("server", file="server", hosts=["localhost"]))
    first = tls.context()
    shake_hands(first, old_server)

    successor = Authority(tmp_path / "successor", "test")
    path.write_bytes(successor.ca.cert.read_bytes())
    assert tls.context() is first
    now[0] = 10

    shake_hands(tls.context(), serving(successor.sign("server", file="server", hosts=["localhost"])))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tls.context(), old_server)


def test_a_bundle_trusts_each_of_its_authorities_and_may_have_comments(authority: Authority, tmp_path: Path) -> None:
    second = Authority(tmp_path / "second", "second")
    bundle = b"# H\xc3\xb6he\n" + authority.ca.cert.read_bytes() + b"\n\nand another\n" + second.ca.cert.read_bytes()

    for each in (authority, second):
        server = serving(each.sign("server", file="server", hosts=["localhost"]))
        shake_hands(Tls(ca=bundle).context(), server)


def test_a_server_certificate_itself_may_be_the_trust_anchor(tmp_path: Path) -> None:
    """As in Go: a self-signed certificate without the marks of an authority is trusted when it is the CA bundle."""
    files = self_signed(tmp_path, "localhost")

    shake_hands(Tls(ca=files.cert.read_bytes()).context(), serving(files))


def self_signed(directory: Path, host: str) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "old")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    files = Pair(directory / "self.crt", directory / "self.key")
    files.cert.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return files


def test_garbage_is_a_config_error_and_nothing_of_the_tls_library(authority: Authority) -> None:
    me = pair_of(authority.sign("me", file="me"))

    with pytest.raises(ConfigError, match="expected PEM certificates, at ca"):
        Tls(ca=b"garbage").context()
    with pytest.raises(ConfigError, match="does not match its private key"):
        Tls().context(CertificatePair(me.certificate, b"garbage"))


def test_an_encrypted_key_is_refused_without_asking_for_a_passphrase(authority: Authority) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"passphrase"),
    )
    certificate = authority.sign("me", file="me").cert.read_bytes()

    with pytest.raises(ConfigError, match="the private key is encrypted"):
        check_pair(certificate, encrypted, certificate_location=PLACE, key_location=PLACE)
    with pytest.raises(ConfigError, match="does not match its private key"):
        Tls().context(CertificatePair(certificate, encrypted))


@pytest.mark.parametrize("lend", [pem_file, tls_module._disk_file], ids=["where it lies by default", "on disk"])
def test_a_temporary_file_is_deleted_afterwards(lend: Callable[[bytes], AbstractContextManager[str]]) -> None:
    with lend(b"content") as path:
        assert Path(path).read_bytes() == b"content"

    assert not Path(path).exists()


def test_a_temporary_file_on_disk_is_readable_by_its_owner_only() -> None:
    with tls_module._disk_file(b"content") as path:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_pair_loads_from_disk_where_memory_files_are_missing(authority: Authority) -> None:
    pair = pair_of(authority.sign("me", file="me"))

    with tls_module._disk_file(pair.certificate + pair.key) as path:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path)
