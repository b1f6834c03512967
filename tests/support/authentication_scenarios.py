"""Requests about authentication; each scenario returns what a server answered, by label."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from authentication_clusters import AuthenticationCluster, Reply, claims_of, masked

__all__ = ["SCENARIOS"]

Answers = dict[str, Any]
Json = dict[str, Any]

NAMESPACE = "/api/v1/namespaces/default"
ACCOUNTS = f"{NAMESPACE}/serviceaccounts"
SECRETS = f"{NAMESPACE}/secrets"
PODS = f"{NAMESPACE}/pods"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
SELF_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
OTHER_UID = "b5dd9a29-0f72-4a5d-b0d6-6a0b2c6dd9c0"
TYPE: Json = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}


def request(**spec: Any) -> Json:
    return {**TYPE, "spec": spec}


def bound(kind: str, name: str = "x", version: str = "v1", **more: Any) -> Json:
    return request(boundObjectRef={"kind": kind, "apiVersion": version, "name": name}, **more)


def account(cluster: AuthenticationCluster, name: str) -> str:
    """Create a service account; return the path of its tokens."""
    cluster.good("POST", ACCOUNTS, {"metadata": {"name": name}})
    return f"{ACCOUNTS}/{name}/token"


def pod(cluster: AuthenticationCluster, name: str, service_account: str) -> None:
    spec = {"serviceAccountName": service_account, "containers": [{"name": "c", "image": "i"}]}
    cluster.good("POST", PODS, {"metadata": {"name": name}, "spec": spec})


def token_of(cluster: AuthenticationCluster, path: str, body: Json) -> str:
    token: str = cluster.good("POST", path, body)["status"]["token"]
    return token


def review(cluster: AuthenticationCluster, token: str, **spec: Any) -> Reply:
    return cluster.request("POST", REVIEWS, {"spec": {"token": token, **spec}})


def wait_until_revoked(cluster: AuthenticationCluster, token: str) -> None:
    cluster.until(lambda: cluster.whoami(token=token) == "401 Unauthorized")


def lifetimes(token: str) -> Json:
    """Return the claims of a token, with times relative to its issue."""
    claims: Json = claims_of(token)
    issued = claims.pop("iat")
    for key in ("exp", "nbf"):
        claims[key] -= issued
    if "warnafter" in claims["kubernetes.io"]:
        claims["kubernetes.io"]["warnafter"] -= issued
    found: Json = masked(claims)
    return found


def token_requests(cluster: AuthenticationCluster) -> Answers:
    """What a TokenRequest may contain, and what the token then says."""
    path = account(cluster, "asker")
    bodies: dict[str, Any] = {
        "default": request(),
        "no type": {},
        "no spec": TYPE,
        "no body": None,
        "too short": request(expirationSeconds=599),
        "too long": request(expirationSeconds=(1 << 32) + 1),
        "shortest": request(expirationSeconds=600),
        "audiences": request(audiences=["a", "b"]),
        "another kind": {"kind": "Pod", "apiVersion": "v1"},
        "another version": {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v2"},
        "a wrong type": request(expirationSeconds="x"),
        "an unknown field": request(foo=1),
        "another name": {**TYPE, "metadata": {"name": "other"}, "spec": {}},
        "another namespace": {**TYPE, "metadata": {"namespace": "other"}, "spec": {}},
        "another uid": {**TYPE, "metadata": {"uid": OTHER_UID}, "spec": {}},
        "metadata": {**TYPE, "metadata": {"labels": {"a": "b"}, "generateName": "x"}, "spec": {}},
        "status": {**TYPE, "spec": {}, "status": {"token": "x", "expirationTimestamp": "2020-01-01T00:00:00Z"}},
    }
    replies = {label: cluster.request("POST", path, body) for label, body in bodies.items()}
    answers: Answers = {label: reply.masked for label, reply in replies.items()}
    answers |= {
        f"{label}: claims": lifetimes(reply.json()["status"]["token"])
        for label, reply in replies.items()
        if reply.status == 201
    }
    answers["no account"] = cluster.request("POST", f"{ACCOUNTS}/missing/token", request()).masked
    answers["get"] = cluster.request("GET", path).masked
    return answers


def bound_tokens(cluster: AuthenticationCluster) -> Answers:
    """Tokens that are bound to an object, and who they are."""
    path = account(cluster, "bound")
    pod(cluster, "bound", "bound")
    bodies = {
        "a kind that cannot be": bound("ConfigMap"),
        "another group": bound("Deployment", version="apps/v1"),
        "nothing": request(boundObjectRef={}),
        "missing pod": bound("Pod"),
        "missing secret": bound("Secret"),
        "missing node": bound("Node"),
        "another pod": request(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "bound", "uid": OTHER_UID}),
        "pod": bound("Pod", "bound"),
        "pod, from a volume": bound("Pod", "bound", expirationSeconds=3607),
        "pod, for another audience": bound("Pod", "bound", expirationSeconds=3607, audiences=["x"]),
    }
    answers: Answers = {label: cluster.request("POST", path, body).masked for label, body in bodies.items()}
    other = f"{ACCOUNTS}/default/token"
    cluster.until(lambda: cluster.request("GET", f"{ACCOUNTS}/default").status == 200)
    answers["pod of another account"] = cluster.request("POST", other, bodies["pod"]).masked
    tokens = {label: token_of(cluster, path, bodies[label]) for label in bodies if label.startswith("pod")}
    cluster.good("POST", "/api/v1/nodes", {"metadata": {"name": "bound"}})
    binding = {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "bound"}}
    cluster.good("POST", f"{PODS}/bound/binding", binding)
    tokens["pod on a node"] = token_of(cluster, path, bodies["pod"])
    tokens["node"] = token_of(cluster, path, bound("Node", "bound"))
    answers |= {f"{label}: claims": lifetimes(token) for label, token in tokens.items()}
    answers |= {f"{label}: user": masked(cluster.whoami(token=token)) for label, token in tokens.items()}
    return answers


def revoked_tokens(cluster: AuthenticationCluster) -> Answers:
    """A token is no longer accepted when its account or its bound object is gone.

    None is used before: the real server caches for ten seconds that it has accepted a token.
    """
    path = account(cluster, "revoked")
    pod(cluster, "revoked", "revoked")
    cluster.good("POST", SECRETS, {"metadata": {"name": "revoked"}})
    cluster.good("POST", "/api/v1/nodes", {"metadata": {"name": "revoked"}})
    kinds = {
        "Pod": f"{PODS}/revoked?gracePeriodSeconds=0",
        "Secret": f"{SECRETS}/revoked",
        "Node": "/api/v1/nodes/revoked",
    }
    tokens = {kind: token_of(cluster, path, bound(kind, "revoked")) for kind in kinds}
    own = token_of(cluster, path, request())
    answers: Answers = {}
    for kind, target in kinds.items():
        cluster.request("DELETE", target)
        wait_until_revoked(cluster, tokens[kind])
        answers[kind] = review(cluster, tokens[kind]).masked
    cluster.good("DELETE", f"{ACCOUNTS}/revoked")
    wait_until_revoked(cluster, own)
    answers["account"] = review(cluster, own).masked
    account(cluster, "revoked")
    answers["another account of that name"] = review(cluster, own).masked
    return answers


def token_reviews(cluster: AuthenticationCluster) -> Answers:
    """Who a token is, and for which audiences."""
    path = account(cluster, "reviewed")
    own = token_of(cluster, path, request())
    other = token_of(cluster, path, request(audiences=["a", "b"]))
    return {
        "accepted": review(cluster, own).masked,
        "other audiences": review(cluster, other, audiences=["b", "c"]).masked,
        "not for the API server": review(cluster, other).masked,
        "not for that audience": review(cluster, own, audiences=["c"]).masked,
        "no token": cluster.request("POST", REVIEWS, {}).masked,
        "not a token": review(cluster, "nonsense").masked,
        "a changed signature": review(cluster, own[:-4] + "AAAA").masked,
        "user": masked(cluster.whoami(token=own)),
        "another audience as a credential": cluster.whoami(token=other),
        "self review with more": cluster.request("POST", SELF_REVIEWS, {"metadata": {"name": "x"}, "spec": {}}).masked,
    }


def discovery(cluster: AuthenticationCluster) -> Answers:
    """How other programs verify tokens."""
    answers: Answers = {}
    for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        reply = cluster.request("GET", path)
        headers = [reply.headers.get(name) for name in ("content-type", "cache-control")]
        answers[path] = (reply.masked, headers, cluster.request("POST", path).masked)
    listed = cluster.good("GET", "/")["paths"]
    return answers | {"listed": [path for path in listed if "openid" in path or "jwks" in path]}


def pods_with_accounts(cluster: AuthenticationCluster) -> Answers:
    """What a pod gets of its service account."""
    secrets = {"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]}
    cluster.good("POST", ACCOUNTS, {"metadata": {"name": "pulls"}, **secrets})
    quiet = {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False}
    cluster.good("POST", ACCOUNTS, quiet)
    annotations = {"kubernetes.io/enforce-mountable-secrets": "true"}
    cluster.good("POST", ACCOUNTS, {"metadata": {"name": "strict", "annotations": annotations}, **secrets})
    environment = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]
    container = {"name": "c", "image": "i"}
    specs: dict[str, Json] = {
        "pulls": {"serviceAccountName": "pulls"},
        "own pull secrets": {"serviceAccountName": "pulls", "imagePullSecrets": [{"name": "own"}]},
        "quiet": {"serviceAccountName": "quiet"},
        "loud": {"serviceAccountName": "quiet", "automountServiceAccountToken": True},
        "missing": {"serviceAccountName": "missing"},
        "strict": {"serviceAccountName": "strict", "volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
        "strict, another secret": {
            "serviceAccountName": "strict",
            "volumes": [{"name": "v", "secret": {"secretName": "other"}}],
        },
        "strict, environment": {
            "serviceAccountName": "strict",
            "containers": [{**container, "env": environment}],
        },
        "strict, all of a secret": {
            "serviceAccountName": "strict",
            "initContainers": [{"name": "i", "image": "i", "envFrom": [{"secretRef": {"name": "other"}}]}],
        },
        "strict, pull secret": {"serviceAccountName": "strict", "imagePullSecrets": [{"name": "other"}]},
    }
    return {label: _dry_run(cluster, {"containers": [container], **spec}) for label, spec in specs.items()}


def _dry_run(cluster: AuthenticationCluster, spec: Json) -> Any:
    reply = cluster.request("POST", f"{PODS}?dryRun=All", {"metadata": {"name": "p"}, "spec": spec})
    if reply.status != 201:
        return reply.masked
    found = reply.json()["spec"]
    # The suffix of the volume is random on the real server.
    for named in _names(found):
        if named["name"].startswith("kube-api-access-"):
            named["name"] = "kube-api-access-<end>"
    return masked(found)


def _names(spec: Json) -> Iterable[Json]:
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    return [*spec.get("volumes", ()), *(mount for each in containers for mount in each.get("volumeMounts", ()))]


def kubectl_commands(cluster: AuthenticationCluster) -> Answers:
    """What kubectl prints of users and tokens."""
    account(cluster, "typist")
    lines = {
        "whoami": "auth whoami",
        "as": "auth whoami --as bob --as-group devs --as-group ops --as-uid 7",
        "as account": "auth whoami --as system:serviceaccount:default:typist",
        "token": "create token typist --duration 10m",
        "short token": "create token typist --duration 1m",
        "no account": "create token nobody",
        "bound token": "create token typist --bound-object-kind Pod --bound-object-name missing",
    }
    runs = {label: cluster.kubectl.run(line.split(" ")) for label, line in lines.items()}
    return {label: masked([run.code, run.out.split(), run.err]) for label, run in runs.items()}


SCENARIOS: tuple[Callable[[AuthenticationCluster], Answers], ...] = (
    token_requests,
    bound_tokens,
    revoked_tokens,
    token_reviews,
    discovery,
    pods_with_accounts,
    kubectl_commands,
)
