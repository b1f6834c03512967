"""Secrets with tokens of service accounts: how they are filled, used and deleted."""

from __future__ import annotations

import base64
from typing import Any

from authentication_clusters import AuthenticationCluster, claims_of, masked
from authentication_scenarios import ACCOUNTS, SECRETS, Answers, Json, account, review, wait_until_revoked

__all__ = ["SECRET_SCENARIOS"]


def secret(name: str, service_account: str, **more: Any) -> Json:
    annotations = {"kubernetes.io/service-account.name": service_account}
    kind = "kubernetes.io/service-account-token"
    return {"metadata": {"name": name, "annotations": annotations}, "type": kind, **more}


def filled(cluster: AuthenticationCluster, name: str) -> Json:
    """Wait for the token in a Secret; return the Secret."""

    def find() -> Json | None:
        found: Json = cluster.good("GET", f"{SECRETS}/{name}")
        return found if "token" in found.get("data", {}) else None

    found: Json = cluster.until(find)
    return found


def token_in(document: Json) -> str:
    return base64.b64decode(document["data"]["token"]).decode()


def token_secrets(cluster: AuthenticationCluster) -> Answers:
    """A Secret gets a token, the CA and the namespace; the token is a credential."""
    account(cluster, "old")
    answers: Answers = {"created": cluster.request("POST", SECRETS, secret("old", "old")).masked}
    answers["no annotation"] = cluster.request(
        "POST", SECRETS, {**secret("none", ""), "metadata": {"name": "n"}}
    ).masked
    found = filled(cluster, "old")
    token = token_in(found)
    # A server sorts managers by the second of their last write, and by name within it.
    managers = {each["manager"]: each["fieldsV1"] for each in found["metadata"].pop("managedFields")}
    authority = base64.b64decode(found["data"].pop("ca.crt")).strip() == cluster.ca.strip()
    found["metadata"].pop("resourceVersion")
    found["data"].pop("token")
    answers |= {"filled": masked(found), "managers": managers, "CA": authority, "claims": masked(claims_of(token))}
    answers |= {"user": masked(cluster.whoami(token=token)), "review": review(cluster, token).masked}
    labels = cluster.good("GET", f"{SECRETS}/old")["metadata"]["labels"]
    return answers | {"labels": labels}


def deleted_token_secrets(cluster: AuthenticationCluster) -> Answers:
    """A Secret is deleted with its account; a token that was deleted is not accepted."""
    account(cluster, "leaving")
    for name in ("leaving", "removed"):
        cluster.good("POST", SECRETS, secret(name, "leaving"))
    tokens = {name: token_in(filled(cluster, name)) for name in ("leaving", "removed")}
    cluster.good("POST", SECRETS, secret("orphan", "missing"))
    cluster.until(lambda: cluster.request("GET", f"{SECRETS}/orphan").status == 404)
    cluster.good("DELETE", f"{SECRETS}/removed")
    wait_until_revoked(cluster, tokens["removed"])
    answers: Answers = {"removed": review(cluster, tokens["removed"]).masked}
    cluster.good("DELETE", f"{ACCOUNTS}/leaving")
    cluster.until(lambda: cluster.request("GET", f"{SECRETS}/leaving").status == 404)
    wait_until_revoked(cluster, tokens["leaving"])
    return answers | {"account": review(cluster, tokens["leaving"]).masked}


SECRET_SCENARIOS = (token_secrets, deleted_token_secrets)
