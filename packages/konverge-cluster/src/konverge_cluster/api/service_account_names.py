"""The user names and groups of service accounts."""

from __future__ import annotations

from typing import Final

from konverge.objects.names import dns_label_errors, dns_subdomain_errors

__all__ = ["service_account_groups", "service_account_username", "split_service_account_username"]

_PREFIX: Final = "system:serviceaccount:"
_ALL: Final = "system:serviceaccounts"


def service_account_username(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of every service account in a namespace, without those of all users."""
    return (_ALL, f"{_ALL}:{namespace}")


def split_service_account_username(username: str) -> tuple[str, str] | None:
    """Return the namespace and name of a service account, None when it is not the user name of one."""
    namespace, colon, name = username.removeprefix(_PREFIX).partition(":")
    if not username.startswith(_PREFIX) or not colon or dns_label_errors(namespace) or dns_subdomain_errors(name):
        return None
    return namespace, name
