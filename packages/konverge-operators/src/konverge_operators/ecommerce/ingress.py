"""The ingress component: Ingress or HTTPRoute, the TLS Secret, and oauth2-proxy when users must log in.

Nothing is exposed before authentication is configured: without the Secret the component waits and creates nothing.
"""

from __future__ import annotations

import secrets

from konverge import Context
from konverge.certificates import Authority
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Secret, Service
from konverge.k8s.networking.v1 import Ingress
from konverge.objects import AnyObject, Kind, Unstructured
from konverge.workflow import Configuration, Waiting
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.ecommerce.names import OPERATOR, component_name
from konverge_operators.manifests import Json, child, labels, pod_spec, selector

__all__ = ["KINDS", "OPTIONAL_KINDS", "configuration", "ingress_objects", "url_of"]

HTTP_ROUTE = Kind("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
KINDS = (Ingress, Deployment, Service)
OPTIONAL_KINDS = (HTTP_ROUTE,)
_REQUIRED = ("issuer", "client-id", "client-secret")
_PROXY, _PROXY_PORT = "quay.io/oauth2-proxy/oauth2-proxy:v7.8.1", 4180


def _credentials(app: EcommerceApp) -> list[str]:
    return [component_name(app, "oauth2")] if app.spec.security.authentication.enabled else []


configuration: Configuration[EcommerceApp] = Configuration(secrets=_credentials)


def url_of(app: EcommerceApp) -> str:
    """Return the address of the application; "" if it has no host of its own."""
    scheme = "https" if app.spec.security.tls.enabled else "http"
    return f"{scheme}://{app.spec.ingress.host}" if app.spec.ingress.host else ""


async def ingress_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the ingress."""
    objects: list[AnyObject] = []
    backend, port = component_name(app, "frontend"), app.spec.frontend.port
    for secret in _credentials(app):
        await _require_credentials(secret, ctx)
        await _create_cookie_secret(app, ctx)
        objects += _proxy_objects(app, secret, await configuration.annotations(app, ctx))
        backend, port = component_name(app, "oauth2-proxy"), _PROXY_PORT
    if app.spec.security.tls.enabled:
        await _create_certificate(app, ctx)
    route = _http_route(app, ctx, backend, port) if app.spec.ingress.gateway else _ingress(app, backend, port)
    return [route, *objects]


async def _require_credentials(name: str, ctx: Context) -> None:
    secret = await ctx.get(Secret, name)
    missing = [key for key in _REQUIRED if secret is None or not secret.data.get(key)]
    if missing:
        keys = ", ".join(missing)
        raise Waiting("AuthenticationNotConfigured", f"create the Secret {name} with {keys}; nothing is exposed before")


async def _create_cookie_secret(app: EcommerceApp, ctx: Context) -> None:
    data = {"cookie-secret": secrets.token_urlsafe(24)[:32]}
    name = component_name(app, "oauth2-cookie")
    await ctx.create_once(child(Secret, name, labels(app.name, "ingress", operator=OPERATOR), stringData=data))


async def _create_certificate(app: EcommerceApp, ctx: Context) -> None:
    """Create a self-signed certificate unless the user, or cert-manager, has created the Secret."""
    name, host = component_name(app, "tls"), app.spec.ingress.host or f"{app.name}.{app.namespace}.svc"
    if await ctx.get(Secret, name) is None:
        pair = Authority(OPERATOR).sign(app.name[:64], hosts=[host])  # a common name has at most 64 characters
        data = {"tls.crt": pair.certificate, "tls.key": pair.key}
        all_labels = labels(app.name, "ingress", operator=OPERATOR)
        await ctx.create_once(child(Secret, name, all_labels, type="kubernetes.io/tls", stringData=data))


def _ingress(app: EcommerceApp, backend: str, port: int) -> Ingress:
    service = {"service": {"name": backend, "port": {"number": port}}}
    rule: Json = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": service}]}}
    spec: Json = {"rules": [rule]}
    if app.spec.ingress.host:
        rule["host"] = app.spec.ingress.host
    if app.spec.ingress.class_name:
        spec["ingressClassName"] = app.spec.ingress.class_name
    if app.spec.security.tls.enabled:
        hosts = {"hosts": [app.spec.ingress.host]} if app.spec.ingress.host else {}
        spec["tls"] = [{"secretName": component_name(app, "tls"), **hosts}]
    return child(Ingress, app.name, labels(app.name, "ingress", operator=OPERATOR), spec=spec)


def _http_route(app: EcommerceApp, ctx: Context, backend: str, port: int) -> Unstructured:
    if not ctx.is_served(HTTP_ROUTE):
        raise Waiting("GatewayNotInstalled", "spec.ingress.gateway needs the Gateway API: install its CRDs")
    spec: Json = {
        "parentRefs": [{"name": app.spec.ingress.gateway}],
        "rules": [{"backendRefs": [{"name": backend, "port": port}]}],
    }
    if app.spec.ingress.host:
        spec["hostnames"] = [app.spec.ingress.host]
    metadata = {"name": app.name, "labels": labels(app.name, "ingress", operator=OPERATOR)}
    return Unstructured(apiVersion=HTTP_ROUTE.api_version, kind=HTTP_ROUTE.kind, metadata=metadata, spec=spec)


def _proxy_objects(app: EcommerceApp, secret: str, annotations: dict[str, str]) -> list[AnyObject]:
    name, selected = component_name(app, "oauth2-proxy"), selector(app.name, "oauth2-proxy")
    all_labels = labels(app.name, "ingress", operator=OPERATOR)

    def variable(key: str, source: str, entry: str) -> Json:
        return {"name": f"OAUTH2_PROXY_{key}", "valueFrom": {"secretKeyRef": {"name": source, "key": entry}}}

    upstream = f"http://{component_name(app, 'frontend')}:{app.spec.frontend.port}"
    container: Json = {
        "name": "oauth2-proxy",
        "image": _PROXY,
        "args": [
            f"--http-address=0.0.0.0:{_PROXY_PORT}",
            "--provider=oidc",
            "--email-domain=*",
            f"--upstream={upstream}",
        ],
        "env": [
            variable("OIDC_ISSUER_URL", secret, "issuer"),
            variable("CLIENT_ID", secret, "client-id"),
            variable("CLIENT_SECRET", secret, "client-secret"),
            variable("COOKIE_SECRET", component_name(app, "oauth2-cookie"), "cookie-secret"),
        ],
        "ports": [{"name": "http", "containerPort": _PROXY_PORT}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "livenessProbe": {"httpGet": {"path": "/ping", "port": "http"}},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    template = {
        "metadata": {"labels": {**all_labels, **selected}, "annotations": annotations},
        "spec": pod_spec(container, selected),
    }
    spec = {"paused": False, "replicas": 2, "selector": {"matchLabels": selected}, "template": template}
    ports = [{"name": "http", "port": _PROXY_PORT, "targetPort": "http"}]
    return [
        child(Deployment, name, all_labels, spec=spec),
        child(Service, name, all_labels, spec={"selector": selected, "ports": ports}),
    ]
