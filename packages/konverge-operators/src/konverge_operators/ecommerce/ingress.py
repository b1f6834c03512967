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
from konverge.objects import AnyObject, Kind
from konverge.workflow import Configuration, Waiting
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.ecommerce.names import OPERATOR, Part, secret_variable
from konverge_operators.manifests import Json

__all__ = ["KINDS", "OPTIONAL_KINDS", "configuration", "ingress_objects", "url_of"]

HTTP_ROUTE = Kind("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
KINDS = (Ingress, Deployment, Service)
OPTIONAL_KINDS = (HTTP_ROUTE,)
_REQUIRED = ("issuer", "client-id", "client-secret")
_PROXY, _PROXY_PORT = "quay.io/oauth2-proxy/oauth2-proxy:v7.8.1", 4180


def _credentials(app: EcommerceApp) -> list[str]:
    return [Part(app, "oauth2").name] if app.spec.security.authentication.enabled else []


configuration: Configuration[EcommerceApp] = Configuration(secrets=_credentials)


def url_of(app: EcommerceApp) -> str:
    """Return the address of the application; "" if it has no host of its own."""
    scheme = "https" if app.spec.security.tls.enabled else "http"
    return f"{scheme}://{app.spec.ingress.host}" if app.spec.ingress.host else ""


async def ingress_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the ingress."""
    ingress, objects = Part(app, "ingress"), list[AnyObject]()
    target, port = Part(app, "frontend"), app.spec.frontend.port
    for secret in _credentials(app):
        await _require_credentials(secret, ctx)
        target, port = Part(app, "oauth2-proxy", component="ingress"), _PROXY_PORT
        cookie = ingress.child(
            Secret, f"{app.name}-oauth2-cookie", stringData={"cookie-secret": secrets.token_urlsafe(24)[:32]}
        )
        await ctx.create_once(cookie)
        objects += _proxy_objects(target, secret, cookie.name, await configuration.annotations(app, ctx))
    if app.spec.security.tls.enabled:
        await _create_certificate(ingress, ctx)
    if app.spec.ingress.gateway:
        if not ctx.is_served(HTTP_ROUTE):
            raise Waiting("GatewayNotInstalled", "spec.ingress.gateway needs the Gateway API: install its CRDs")
        return [ingress.unstructured(HTTP_ROUTE, _route_spec(app, target.name, port), app.name), *objects]
    return [ingress.child(Ingress, app.name, spec=_ingress_spec(app, target.name, port)), *objects]


async def _require_credentials(name: str, ctx: Context) -> None:
    secret = await ctx.get(Secret, name)
    missing = [key for key in _REQUIRED if secret is None or not secret.data.get(key)]
    if missing:
        keys = ", ".join(missing)
        raise Waiting("AuthenticationNotConfigured", f"create the Secret {name} with {keys}; nothing is exposed before")


async def _create_certificate(ingress: Part, ctx: Context) -> None:
    """Create a self-signed certificate unless the user, or cert-manager, has created the Secret."""
    app, name = ingress.app, f"{ingress.app.name}-tls"
    if await ctx.get(Secret, name) is None:
        host = app.spec.ingress.host or f"{app.name}.{app.namespace}.svc"
        pair = Authority(OPERATOR).sign(app.name, hosts=[host])
        data = {"tls.crt": pair.certificate, "tls.key": pair.key}
        await ctx.create_once(ingress.child(Secret, name, type="kubernetes.io/tls", stringData=data))


def _ingress_spec(app: EcommerceApp, target: str, port: int) -> Json:
    service = {"service": {"name": target, "port": {"number": port}}}
    rule: Json = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": service}]}}
    spec: Json = {"rules": [rule]}
    if app.spec.ingress.host:
        rule["host"] = app.spec.ingress.host
    if app.spec.ingress.class_name:
        spec["ingressClassName"] = app.spec.ingress.class_name
    if app.spec.security.tls.enabled:
        hosts = {"hosts": [app.spec.ingress.host]} if app.spec.ingress.host else {}
        spec["tls"] = [{"secretName": f"{app.name}-tls", **hosts}]
    return spec


def _route_spec(app: EcommerceApp, target: str, port: int) -> Json:
    hosts = {"hostnames": [app.spec.ingress.host]} if app.spec.ingress.host else {}
    rules = [{"backendRefs": [{"name": target, "port": port}]}]
    return {"parentRefs": [{"name": app.spec.ingress.gateway}], "rules": rules, **hosts}


def _proxy_objects(part: Part, secret: str, cookie: str, annotations: dict[str, str]) -> list[AnyObject]:
    upstream = f"http://{Part(part.app, 'frontend').name}:{part.app.spec.frontend.port}"
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
            secret_variable("OAUTH2_PROXY_OIDC_ISSUER_URL", secret, "issuer"),
            secret_variable("OAUTH2_PROXY_CLIENT_ID", secret, "client-id"),
            secret_variable("OAUTH2_PROXY_CLIENT_SECRET", secret, "client-secret"),
            secret_variable("OAUTH2_PROXY_COOKIE_SECRET", cookie, "cookie-secret"),
        ],
        "ports": [{"name": "http", "containerPort": _PROXY_PORT}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "livenessProbe": {"httpGet": {"path": "/ping", "port": "http"}},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    template = part.template(container, annotations=annotations)
    spec = {"paused": False, "replicas": 2, "selector": {"matchLabels": part.selector}, "template": template}
    return [part.child(Deployment, spec=spec), part.service(_PROXY_PORT)]
