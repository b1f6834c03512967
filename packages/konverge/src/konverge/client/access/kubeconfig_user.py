"""A user entry of a kubeconfig: its credentials, and the user that it impersonates.

The order is that of client-go: an exec plugin is used only if the entry has no token, token file, user name or client
certificate. A token file that can be read wins over a token.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, cast

from konverge.client.access.credentials import ANONYMOUS, Credentials, StoredCredentials, basic, bearer
from konverge.client.access.exec_plugin import API_VERSIONS, ExecPlugin, ExecSpec
from konverge.client.access.files import NamedFile, RotatingValue
from konverge.client.access.kubeconfig import Entry, Exec, User
from konverge.client.access.locations import Location
from konverge.client.access.tls import CertificatePair, check_pair
from konverge.client.impersonation import Impersonation

__all__ = ["check_user", "credentials_of", "impersonation_of"]

_MAX_EXEC_TIMEOUT = 3600


def check_user(entry: Entry[User]) -> None:
    """Raise ConfigError for an entry that kubectl rejects, whether its credentials are used or not."""
    user = entry.value
    if (user.token or user.token_file) and (user.username or user.password):
        raise entry.location.error("a token and a user name exclude each other")
    if user.auth_provider is not None:
        advice = "use an exec plugin; kubectl has removed them too"
        raise entry.location.child("auth-provider").error("auth providers are not supported", advice)
    if user.exec is not None:
        _check_exec(user.exec, entry.location.child("exec"))


def credentials_of(
    entry: Entry[User], *, cluster: Callable[[], Mapping[str, Any]], environ: Mapping[str, str] | None = None
) -> Credentials:
    """Return the credentials of a user; files are read now, to report errors early.

    `cluster` returns the cluster as an exec plugin gets it.
    """
    user = entry.value
    stored = StoredCredentials(
        authorization=_authorization(entry), token=_token_file(entry), certificate=_certificate(entry)
    )
    identity = stored.current()
    if identity.authorization is not None or identity.certificate is not None:
        return stored
    if user.exec is None:
        return ANONYMOUS
    info = cluster() if user.exec.provide_cluster_info else None
    timeout = _exec_timeout(os.environ if environ is None else environ)
    return ExecPlugin(_exec_spec(entry, user.exec, info), environ=environ, deadline=timeout)


def _exec_timeout(environ: Mapping[str, str]) -> float | None:
    text = environ.get("KONVERGE_EXEC_TIMEOUT", "")
    try:
        seconds = float(text) if text else None
    except ValueError:
        seconds = -1
    if seconds is not None and not 0 < seconds <= _MAX_EXEC_TIMEOUT:
        expected = f"expected a number of seconds up to {_MAX_EXEC_TIMEOUT}"
        raise Location("environment variable KONVERGE_EXEC_TIMEOUT").error(expected)
    return seconds


def impersonation_of(entry: Entry[User]) -> Impersonation | None:
    """Return the impersonation of a user, if any."""
    user = entry.value
    extra = {name: tuple(value or "" for value in values or ()) for name, values in (user.as_user_extra or {}).items()}
    groups = tuple(group or "" for group in user.as_groups or ())
    if not user.as_user:
        if user.as_uid or groups or extra:
            raise entry.location.child("as").error("as-uid, as-groups and as-user-extra need a user")
        return None
    try:
        return Impersonation(user.as_user, user.as_uid or "", groups, extra)
    except ValueError:
        raise entry.location.child("as").error("a header cannot contain a line break") from None


def _authorization(entry: Entry[User]) -> str | None:
    user = entry.value
    if user.token:
        return bearer(user.token, entry.location.child("token"))
    if user.username or user.password:
        return basic(user.username or "", user.password or "")
    return None


def _token_file(entry: Entry[User]) -> RotatingValue[str] | None:
    path = entry.value.token_file
    if not path:
        return None
    location = entry.location.child("tokenFile")
    return RotatingValue([NamedFile(entry.path("tokenFile", path), location)], partial(bearer, location=location))


def _certificate(entry: Entry[User]) -> RotatingValue[CertificatePair] | None:
    user, location = entry.value, entry.location
    certificate = entry.content("client-certificate", user.client_certificate_data, user.client_certificate)
    if certificate is None:
        return None
    key = entry.content("client-key", user.client_key_data, user.client_key)
    if key is None:
        raise location.error("a client certificate needs its key", "client-key or client-key-data")
    make = partial(
        check_pair,
        certificate_location=location.child(
            "client-certificate-data" if user.client_certificate_data else "client-certificate"
        ),
        key_location=location.child("client-key-data" if user.client_key_data else "client-key"),
    )
    return RotatingValue([certificate, key], make)


def _check_exec(plugin: Exec, location: Location) -> None:
    if not plugin.command:
        raise location.child("command").error("no command is set")
    if plugin.api_version not in API_VERSIONS:
        raise location.child("apiVersion").error("the apiVersion is not supported", " or ".join(API_VERSIONS))
    if plugin.interactive_mode not in (None, "", "Never", "IfAvailable", "Always"):
        raise location.child("interactiveMode").error("expected Never, IfAvailable or Always")
    if not plugin.interactive_mode and plugin.api_version == API_VERSIONS[0]:
        raise location.child("interactiveMode").error("it is required with v1", "Never, IfAvailable or Always")
    for index, variable in enumerate(plugin.env or ()):
        if variable is None or not variable.name or "=" in variable.name:
            raise location.child(f"env[{index}].name").error("expected the name of an environment variable")


def _exec_spec(entry: Entry[User], plugin: Exec, cluster: Mapping[str, Any] | None) -> ExecSpec:
    command = plugin.command or ""
    return ExecSpec(
        # A bare name is searched on PATH; a path is relative to the kubeconfig, as all its paths are.
        command=str(entry.path("exec.command", command)) if os.sep in command else command,
        location=entry.location.child("exec"),
        api_version=plugin.api_version or "",
        interactive_mode=cast(Literal["Never", "IfAvailable", "Always"], plugin.interactive_mode or "IfAvailable"),
        args=tuple(argument or "" for argument in plugin.args or ()),
        env={variable.name or "": variable.value or "" for variable in plugin.env or () if variable is not None},
        install_hint=_printable(plugin.install_hint or ""),
        cluster=cluster,
    )


def _printable(text: str) -> str:
    """Replace control characters: a hint must not control the terminal that displays it."""
    return "".join(
        character
        if character in "\t\n\r\v\f" or unicodedata.category(character)[0] in "LMNPSZ"
        else f"U+{ord(character):04X}"
        for character in text
    )
