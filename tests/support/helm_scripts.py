"""Scripts of Helm with a chart of our own: every command of the life of a release."""

from __future__ import annotations

from pathlib import Path

from kubectl_clusters import Line

__all__ = ["HELM_SCRIPTS"]

CHART = Path(__file__).parent.parent / "interop" / "charts" / "shop"
WAIT = "--wait --wait-for-jobs --timeout 100s"


def h(line: str, *words: str) -> Line:
    return Line(line.replace("<chart>", str(CHART)), words=words, quoted=True, program="helm")


def q(line: str, *words: str, text: str = "") -> Line:
    return Line(line, text, words, quoted=True)


OBJECTS = "deployments,statefulsets,services,configmaps,poddisruptionbudgets,cronjobs,coupons"

HELM_SCRIPTS: dict[str, list[Line]] = {
    "helm life": [
        h("lint <chart>"),
        h("show chart <chart>"),
        h("show values <chart>"),
        h("template shop <chart> --set replicas=3"),
        h(f"install shop <chart> {WAIT} --description first"),
        h("install other <chart> --dry-run=server --hide-notes"),  # now that the chart's CRD exists
        h("status shop"),
        h("list"),
        h("list -o json"),
        h("get manifest shop"),
        h("get values shop --all"),
        h("get hooks shop"),
        h("get notes shop"),
        h("get metadata shop"),
        q(f"get {OBJECTS} -o name"),
        q("get persistentvolumeclaims", "data-shop-database-0 Bound", "data-shop-database-1 Bound"),
        q("get pods", "shop-database-0 1/1", "shop-database-1 1/1", "shop-load-1-"),
        h("install shop <chart>"),
        h(f"upgrade shop <chart> {WAIT} --set image=web:2 --set database.replicas=1 --description second"),
        q("get persistentvolumeclaims", "data-shop-database-0 Bound"),
        q("get persistentvolumeclaim data-shop-database-1", "not found"),
        h("history shop"),
        h("get values shop"),
        h("get values shop --revision 1"),
        h(f"upgrade shop <chart> {WAIT} --reuse-values --set replicas=3 --set schedule='*/5 * * * *'"),
        q("get cronjobs", "*/5"),
        h("test shop --timeout 100s"),
        h(f"rollback shop 1 {WAIT}"),
        h("history shop"),
        q("get deployments -o wide", "2/2", "web:1"),
        q("rollout history deployment/shop"),
        h("status shop --show-resources=false"),
        h(f"uninstall shop {WAIT.replace('--wait-for-jobs ', '')} --keep-history"),
        h("list --all"),
        h("history shop"),
        h("uninstall shop"),
        h("list --all"),
        q("get deployments,statefulsets,services,poddisruptionbudgets,cronjobs,jobs,coupons"),
        q("get persistentvolumeclaims", "No resources found"),
    ],
    "helm failures": [
        h("status none"),
        h("install shop <chart> --set replicas=-1"),
        h("install shop <chart> --set image=web:does-not-exist --wait --timeout 8s"),
        h("list"),
        h("list --failed"),
        h("history shop"),
        h(f"upgrade --install shop <chart> {WAIT} --reset-values"),
        h("upgrade shop <chart> --set migrate='exit 3' --timeout 60s"),
        h("history shop"),
        h("upgrade shop <chart> --set image=web:does-not-exist --atomic --timeout 8s"),
        h("history shop"),
        q("get deployments -o wide", "web:1"),
        h(f"upgrade shop <chart> {WAIT} --set test='exit 1'"),
        h("test shop --timeout 60s"),
        h("rollback shop 99"),
        h("uninstall shop --wait --timeout 100s"),
        h("uninstall shop"),
    ],
}
