"""Credentials: controllers that fill the token Secrets of service accounts and sign certificate requests.

    manager.add(*credential_controllers(root_ca=..., generate=..., authority=...))

Not implemented: the approval of requests of kubelets, and references to deleted Secrets stay in service accounts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.certificates import Authority
from konverge.controller import Controller
from konverge_cluster.credentials.certificate_signer import certificate_signer
from konverge_cluster.credentials.token_secrets import GenerateToken, token_secret_controller

__all__ = ["credential_controllers"]


def credential_controllers(
    *, authority: Callable[[], Authority], generate: GenerateToken
) -> tuple[Controller[Any], ...]:
    """Return the controllers of token Secrets and certificate requests.

    `authority` returns the certificate authority of the cluster, and `generate` a token of a service account.
    """
    return (token_secret_controller(lambda: authority().certificate, generate), certificate_signer(authority))
