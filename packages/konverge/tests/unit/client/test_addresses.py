"""The proxy that the environment sets for a server, by the rules of Go."""

from __future__ import annotations

import pytest

from konverge.client.access.addresses import environment_proxy, redact_url
from konverge.errors import ConfigError

PROXY = {"HTTPS_PROXY": "http://secure.example:1", "http_proxy": "http://plain.example:2"}


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxied"),
    [
        ("https://api.example", "", True),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.9:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("https://api.example", "*", False),
        ("https://api.example", "other.example, EXAMPLE ,", False),
        ("https://api.example", "api.example", False),
        ("https://api.example", "pi.example", True),
        ("https://api.example", ".example", False),
        ("https://api.example", "*.example", False),
        ("https://api.example", ".api.example", True),
        ("https://api.example", "api.example:443", False),
        ("https://api.example", "api.example:6443", True),
        ("https://api.example:6443", "api.example:6443", False),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://10.1.2.3", "11.0.0.0/8", True),
        ("https://10.1.2.3", "10.1.2.3", False),
        ("https://10.1.2.3", "2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:443", True),
        ("https://[2001:db8::1]", "2001:db8::/32", False),
        ("https://[2001:db8::1]", "2001:DB8::1", False),
        ("https://[2001:db8::1]:6443", "[2001:db8::1]:6443", False),
        ("https://api.example", "10.0.0.0/8,not/a/network", True),
    ],
)
def test_no_proxy_is_read_as_go_reads_it(server: str, no_proxy: str, proxied: bool) -> None:
    found = environment_proxy(server, {**PROXY, "NO_PROXY": no_proxy})

    assert found == ("http://secure.example:1" if proxied else None)


def test_each_scheme_has_its_own_variable_in_either_case() -> None:
    assert environment_proxy("http://api.example", PROXY) == "http://plain.example:2"
    assert environment_proxy("https://api.example", {"http_proxy": "x"}) is None
    assert (
        environment_proxy("https://api.example", {"https_proxy": "proxy:3128", "no_proxy": "b"}) == "http://proxy:3128"
    )
    assert environment_proxy("https://api.example", {}) is None


def test_a_proxy_that_cannot_be_is_named_by_its_variable() -> None:
    with pytest.raises(
        ConfigError, match=r"^environment variable HTTPS_PROXY: a proxy of scheme 'ftp' is not supported"
    ):
        environment_proxy("https://api.example", {"HTTPS_PROXY": "ftp://u:secret@p"})


def test_a_proxy_is_shown_without_its_password() -> None:
    assert redact_url("http://me:p@ss@proxy:3128") == "http://***@proxy:3128"
    assert redact_url("http://proxy:3128") == "http://proxy:3128"
    assert redact_url(None) is None
