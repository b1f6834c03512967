"""Certificates: subject, purposes, validity."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from konverge.certificates import CLIENT, LEEWAY, SERVER, Subject, make_authority, sign_certificate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = NOW + timedelta(days=7)


def test_a_certificate_is_signed_by_its_authority_alone() -> None:
    ours, theirs = (make_authority("same name", now=NOW, until=UNTIL) for _ in range(2))
    made = sign_certificate(ours, Subject("web"), now=NOW, until=UNTIL).certificate

    made.verify_directly_issued_by(ours.certificate)
    with pytest.raises(InvalidSignature):
        made.verify_directly_issued_by(theirs.certificate)


def test_a_certificate_has_its_subject_and_purposes() -> None:
    authority = make_authority("ca", now=NOW, until=UNTIL)
    subject = Subject("ann", groups=("admins",), hosts=("web.shop.svc", "127.0.0.1"), purposes=(CLIENT, SERVER))
    made = sign_certificate(authority, subject, now=NOW, until=UNTIL).certificate

    assert made.subject.rfc4514_string() == "CN=ann,O=admins"
    hosts = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert hosts.get_values_for_type(x509.DNSName) == ["web.shop.svc"]
    assert [str(each) for each in hosts.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert list(made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [CLIENT, SERVER]
    assert (made.not_valid_before_utc, made.not_valid_after_utc) == (NOW - LEEWAY, UNTIL)


def test_only_an_authority_may_sign() -> None:
    authority = make_authority("ca", now=NOW, until=UNTIL)
    made = sign_certificate(authority, Subject("web"), now=NOW, until=UNTIL)

    for identity, signs in ((authority, True), (made, False)):
        extensions = identity.certificate.extensions
        assert extensions.get_extension_for_class(x509.BasicConstraints).value.ca is signs
        assert extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign is signs
