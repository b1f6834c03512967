"""Credentials that rotate."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from konverge.client.access.credentials import ANONYMOUS, Identity, StaticCredentials, StoredCredentials, basic, bearer
from konverge.client.access.files import NamedFile, RotatingValue
from konverge.client.access.locations import Location
from konverge.client.access.tls import check_pair
from konverge.errors import ConfigError
from konverge.testing.certificates import Authority

PLACE = Location("kubeconfig x", "users[0].user")


class Files:
    """A token file and a pair of files, with the hand on the clock."""

    def __init__(self, root: Path) -> None:
        self.now = 0.0
        self.token = root / "token"
        self.authority = Authority(root / "authority", "test")
        self.certificate = root / "client.crt"
        self.key = root / "client.key"

    def write_pair(self, name: str) -> None:
        pair = self.authority.sign(name, file=name)
        self.certificate.write_bytes(pair.cert.read_bytes())
        self.key.write_bytes(pair.key.read_bytes())

    def token_source(self) -> RotatingValue[str]:
        make = partial(bearer, location=PLACE)
        return RotatingValue([NamedFile(self.token, PLACE)], make, clock=lambda: self.now, reload_interval=10)

    def stored(self) -> StoredCredentials:
        make = partial(check_pair, certificate_location=PLACE, key_location=PLACE)
        parts = [NamedFile(self.certificate, PLACE), NamedFile(self.key, PLACE)]
        pair = RotatingValue(parts, make, clock=lambda: self.now, reload_interval=10)
        return StoredCredentials(token=self.token_source(), certificate=pair)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def test_token_and_certificate_follow_their_files(files: Files) -> None:
    files.token.write_text("one\n")
    files.write_pair("me")
    stored = files.stored()
    first = await stored.identity()
    assert first.authorization == "Bearer one"
    assert await stored.identity() is first

    files.token.write_text("two\n")
    files.write_pair("me-again")
    files.now = 10
    second = await stored.identity()

    assert second.authorization == "Bearer two"
    assert second.certificate != first.certificate
    assert second.certificate is not None
    assert second.certificate.certificate == files.certificate.read_bytes()


async def test_a_new_certificate_without_its_key_is_not_used(files: Files) -> None:
    files.token.write_text("one")
    files.write_pair("me")
    stored = files.stored()
    first = await stored.identity()

    files.certificate.write_bytes(files.authority.sign("next", file="next").cert.read_bytes())
    files.now = 10

    assert await stored.identity() is first


async def test_after_a_rejection_the_files_are_looked_at_at_once(files: Files) -> None:
    files.token.write_text("one")
    stored = StoredCredentials(token=files.token_source())
    rejected = await stored.identity()
    assert await stored.renew(rejected) is None

    files.token.write_text("two")

    assert await stored.identity() is rejected
    assert await stored.renew(rejected) == Identity("Bearer two")
    assert await stored.identity() == Identity("Bearer two")


async def test_a_token_file_wins_over_a_token_once_it_can_be_read(files: Files) -> None:
    stored = StoredCredentials(authorization="Bearer inline", token=files.token_source())
    inline = await stored.identity()
    assert inline.authorization == "Bearer inline"
    assert await stored.renew(inline) is None

    files.token.write_text("from-file")

    assert await stored.renew(inline) == Identity("Bearer from-file")


async def test_a_token_file_alone_must_be_readable(files: Files) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        await StoredCredentials(token=files.token_source()).identity()


async def test_what_never_changes_has_nothing_better_to_offer() -> None:
    credentials = StaticCredentials(Identity("Bearer one"))

    assert await credentials.renew(Identity("Bearer one")) is None
    assert await ANONYMOUS.identity() == Identity()


def test_basic_is_as_the_standard_writes_it() -> None:
    assert basic("Aladdin", "open sesame") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    assert basic("test", "123£") == "Basic dGVzdDoxMjPCow=="


def test_one_config_serves_several_event_loops(files: Files) -> None:
    files.token.write_text("one")
    stored = StoredCredentials(token=files.token_source())

    assert asyncio.run(stored.identity()) is asyncio.run(stored.identity())
