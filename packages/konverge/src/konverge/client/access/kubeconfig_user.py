"""A user entry of a kubeconfig: which credentials it means, and whom it acts as.

The order is client-go's: a token, a token file, a user name or a client certificate each stand for themselves, and an
exec plugin is asked only when the entry has none of them. A token file that can be read wins over a token.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, cast

from konverge.client.access.credentials import ANONYMOUS, Credentials, StoredCredentials, basic, bearer
from konverge.client.access.exec_plugin import API_VERSIONS, ExecPlugin, ExecSpec
from konverge.client.access.files import NamedFile, Rotating
from konverge.client.access.kubeconfig import Entry, Exec, User
from konverge.client.access.places import Place
from konverge.client.access.tls import CertificatePair, check_pair
from konverge.client.impersonation import Impersonation

__all__ = ["check_user", "credentials_of", "impersonation_of"]


def check_user(entry: Entry[User]) -> None:
    """Refuse what kubectl refuses, whether the credentials will be used or not."""
    user = entry.value
    if (user.token or user.token_file) and (user.username or user.password):
        raise entry.place.error("a token and a user name are two ways to log in: only one is allowed")
    if user.auth_provider is not None:
        advice = "kubectl has removed them too: use an exec plugin"
        raise entry.place.at("auth-provider").error("auth providers are not supported", advice)
    if user.exec is not None:
        _check_exec(user.exec, entry.place.at("exec"))


def credentials_of(
    entry: Entry[User], *, cluster: Callable[[], Mapping[str, Any]], environ: Mapping[str, str] | None = None
) -> Credentials:
    """Return the credentials of a user; files are read once, so that what is wrong with them is said now.

    `cluster` gives what an exec plugin is told of the cluster.
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
    told = cluster() if user.exec.provide_cluster_info else None
    return ExecPlugin(_exec_spec(entry, user.exec, told), environ=environ)


def impersonation_of(entry: Entry[User]) -> Impersonation | None:
    """Return whom the user acts as, if anybody."""
    user = entry.value
    extra = {name: tuple(value or "" for value in values or ()) for name, values in (user.as_user_extra or {}).items()}
    groups = tuple(group or "" for group in user.as_groups or ())
    if not user.as_user:
        if user.as_uid or groups or extra:
            raise entry.place.at("as").error("as-uid, as-groups and as-user-extra need a user to go with")
        return None
    try:
        return Impersonation(user.as_user, user.as_uid or "", groups, extra)
    except ValueError:
        raise entry.place.at("as").error("a line break cannot stand in a header") from None


def _authorization(entry: Entry[User]) -> str | None:
    user = entry.value
    if user.token:
        return bearer(user.token, entry.place.at("token"))
    if user.username or user.password:
        return basic(user.username or "", user.password or "")
    return None


def _token_file(entry: Entry[User]) -> Rotating[str] | None:
    path = entry.value.token_file
    if not path:
        return None
    place = entry.place.at("tokenFile")
    return Rotating([NamedFile(entry.path("tokenFile", path), place)], partial(bearer, place=place))


def _certificate(entry: Entry[User]) -> Rotating[CertificatePair] | None:
    user, place = entry.value, entry.place
    certificate = entry.content("client-certificate", user.client_certificate_data, user.client_certificate)
    if certificate is None:
        return None
    key = entry.content("client-key", user.client_key_data, user.client_key)
    if key is None:
        raise place.error("a client certificate needs its key", "client-key or client-key-data")
    make = partial(
        check_pair,
        at=place.at("client-certificate-data" if user.client_certificate_data else "client-certificate"),
        key_at=place.at("client-key-data" if user.client_key_data else "client-key"),
    )
    return Rotating([certificate, key], make)


def _check_exec(plugin: Exec, place: Place) -> None:
    if not plugin.command:
        raise place.at("command").error("no command is set")
    if plugin.api_version not in API_VERSIONS:
        raise place.at("apiVersion").error("expected an apiVersion that is supported", " or ".join(API_VERSIONS))
    if plugin.interactive_mode not in (None, "", "Never", "IfAvailable", "Always"):
        raise place.at("interactiveMode").error("expected Never, IfAvailable or Always")
    if not plugin.interactive_mode and plugin.api_version == API_VERSIONS[0]:
        raise place.at("interactiveMode").error("it is required with v1", "Never, IfAvailable or Always")
    for index, variable in enumerate(plugin.env or ()):
        if variable is None or not variable.name or "=" in variable.name:
            raise place.at(f"env[{index}].name").error("expected the name of an environment variable")


def _exec_spec(entry: Entry[User], plugin: Exec, cluster: Mapping[str, Any] | None) -> ExecSpec:
    command = plugin.command or ""
    return ExecSpec(
        # A bare name is looked for on PATH; a path is relative to the kubeconfig, as all paths in it are.
        command=str(entry.path("exec.command", command)) if os.sep in command else command,
        place=entry.place.at("exec"),
        api_version=plugin.api_version or "",
        interactive_mode=cast(Literal["Never", "IfAvailable", "Always"], plugin.interactive_mode or "IfAvailable"),
        args=tuple(argument or "" for argument in plugin.args or ()),
        env={variable.name or "": variable.value or "" for variable in plugin.env or () if variable is not None},
        install_hint=_printable(plugin.install_hint or ""),
        cluster=cluster,
    )


def _printable(text: str) -> str:
    """Spell out control characters: a hint must not steer the terminal that shows it."""
    return "".join(
        character
        if character in "\t\n\r\v\f" or unicodedata.category(character)[0] in "LMNPSZ"
        else f"U+{ord(character):04X}"
        for character in text
    )
