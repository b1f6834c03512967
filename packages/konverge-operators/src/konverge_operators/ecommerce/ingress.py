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
from konverge.objects import AnyObject
from konverge.workflow import Configuration, Waiting
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.ecommerce.names import OPERATOR, Part
from konverge_operators.manifests import HTTP_ROUTE, Json, ingress_spec, route_spec, secret_variable, unstructured

__all__ = ["KINDS", "OPTIONAL_KINDS", "configuration", "ingress_objects", "url_of"]

KINDS = (Ingress, Deployment, Service)
OPTIONAL_KINDS = (HTTP_ROUTE,)
_VARIABLES = {"OIDC_ISSUER_URL": "issuer", "CLIENT_ID": "client-id", "CLIENT_SECRET": "client-secret"}
"""Options of oauth2-proxy, and the keys of the Secret that has them."""
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
    return [_route(ingress, ctx, target.name, port), *objects]


def _route(part: Part, ctx: Context, service: str, port: int) -> AnyObject:
    """Return the Ingress or the HTTPRoute."""
    app, options = part.app, part.app.spec.ingress
    if not options.gateway:
        secret = f"{app.name}-tls" if app.spec.security.tls.enabled else None
        name = options.class_name or None
        spec = ingress_spec(service, host=options.host or None, class_name=name, tls_secret=secret)
        return part.child(Ingress, app.name, spec=spec)
    if not ctx.is_served(HTTP_ROUTE):
        raise Waiting("GatewayNotInstalled", "spec.ingress.gateway needs the Gateway API: install its CRDs")
    spec = route_spec({"name": options.gateway}, service, port, host=options.host or None)
    return unstructured(HTTP_ROUTE, app.name, part.labels, spec)


async def _require_credentials(name: str, ctx: Context) -> None:
    secret = await ctx.get(Secret, name)
    missing = [key for key in _VARIABLES.values() if secret is None or not secret.data.get(key)]
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
            *(secret_variable(f"OAUTH2_PROXY_{name}", secret, key) for name, key in _VARIABLES.items()),
            secret_variable("OAUTH2_PROXY_COOKIE_SECRET", cookie, "cookie-secret"),
        ],
        "ports": [{"name": "http", "containerPort": _PROXY_PORT}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "livenessProbe": {"httpGet": {"path": "/ping", "port": "http"}},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    return [part.deployment(part.template(container, annotations=annotations), replicas=2), part.service(_PROXY_PORT)]
