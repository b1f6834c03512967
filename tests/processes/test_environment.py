"""What a container reads: environment, command, working directory and volumes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge import Client
from konverge.client import load_config
from konverge.objects import Unstructured
from process_clusters import (
    SLEEP,
    ProcessCluster,
    config_map,
    has_phase,
    is_ready,
    secret,
    shared,
    status_of,
    waits_for,
)

pytestmark = pytest.mark.processes


@shared
async def test_the_environment_has_values_and_references(cluster: ProcessCluster) -> None:
    await cluster.client.create(config_map("settings", color="blue", size="large"))
    await cluster.client.create(secret("login", password="hidden"))
    env: list[dict[str, Any]] = [
        {"name": "FIRST", "value": "one"},
        {"name": "SECOND", "value": "$(FIRST)-two-$(UNKNOWN)-$$(FIRST)"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}},
        {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "color"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
        {"name": "ABSENT", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x", "optional": True}}},
    ]
    sources = [
        {"prefix": "ALL_", "configMapRef": {"name": "settings"}},
        {"secretRef": {"name": "none", "optional": True}},
    ]
    resources = {"limits": {"memory": "64Mi"}, "requests": {"cpu": "250m"}}
    container = {"args": ["env"], "env": env, "envFrom": sources, "resources": resources}
    await cluster.create("p", container, labels={"app": "web"}, restartPolicy="Never")

    found = await cluster.wait("p", has_phase("Succeeded"))

    variables = dict(line.split("=", 1) for line in cluster.log("p").splitlines())
    expected = {
        "FIRST": "one",
        "SECOND": "one-two-$(UNKNOWN)-$(FIRST)",
        "NAME": "p",
        "LABEL": "web",
        "IP": found["status"]["podIP"],
        "MEMORY": "64",
        "CPU": "250",
        "COLOR": "blue",
        "PASSWORD": "hidden",
        "ALL_color": "blue",
        "ALL_size": "large",
        "HOSTNAME": "p",
    }
    assert {name: variables.get(name) for name in expected} == expected
    assert "ABSENT" not in variables


@shared
async def test_the_environment_has_the_services_of_the_namespace(cluster: ProcessCluster) -> None:
    ports = [{"name": "http", "port": 8080}, {"name": "admin", "port": 9090}]
    for name, address in (("my-shop", {}), ("headless", {"clusterIP": "None"})):
        service = {"metadata": {"name": name}, "spec": {"ports": ports, **address}}
        await cluster.client.create(Unstructured({"apiVersion": "v1", "kind": "Service", **service}))
    address = (await cluster.client.get("services", "my-shop"))["spec"]["clusterIP"]
    await cluster.create("linked", {"args": ["env"]}, restartPolicy="Never")
    await cluster.create("unlinked", {"args": ["env"]}, restartPolicy="Never", enableServiceLinks=False)

    await cluster.wait("linked", has_phase("Succeeded"))
    await cluster.wait("unlinked", has_phase("Succeeded"))

    found = dict(line.split("=", 1) for line in cluster.log("linked").splitlines())
    assert {name: value for name, value in found.items() if name.startswith(("MY_SHOP", "HEADLESS"))} == {
        "MY_SHOP_SERVICE_HOST": address,
        "MY_SHOP_SERVICE_PORT": "8080",
        "MY_SHOP_SERVICE_PORT_HTTP": "8080",
        "MY_SHOP_SERVICE_PORT_ADMIN": "9090",
        "MY_SHOP_PORT": f"tcp://{address}:8080",
        "MY_SHOP_PORT_8080_TCP": f"tcp://{address}:8080",
        "MY_SHOP_PORT_8080_TCP_PROTO": "tcp",
        "MY_SHOP_PORT_8080_TCP_PORT": "8080",
        "MY_SHOP_PORT_8080_TCP_ADDR": address,
        "MY_SHOP_PORT_9090_TCP": f"tcp://{address}:9090",
        "MY_SHOP_PORT_9090_TCP_PROTO": "tcp",
        "MY_SHOP_PORT_9090_TCP_PORT": "9090",
        "MY_SHOP_PORT_9090_TCP_ADDR": address,
    }
    assert "MY_SHOP" not in cluster.log("unlinked")


@shared
async def test_a_missing_reference_holds_a_container_until_it_exists(cluster: ProcessCluster) -> None:
    env = [{"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "color"}}}]
    await cluster.create("p", {"args": ["echo $COLOR"], "env": env}, restartPolicy="Never")
    waiting = await cluster.wait("p", waits_for("CreateContainerConfigError"))

    await cluster.client.create(config_map("late", color="green"))

    await cluster.wait("p", has_phase("Succeeded"))
    assert status_of(waiting)["state"]["waiting"]["message"] == 'configmap "late" not found'
    assert cluster.log("p") == "green"


@shared
async def test_arguments_are_expanded(cluster: ProcessCluster) -> None:
    container = {"command": ["echo"], "args": ["$(A)", "$$(A)", "$(B)"], "env": [{"name": "A", "value": "x y"}]}
    await cluster.create("p", container, restartPolicy="Never")

    await cluster.wait("p", has_phase("Succeeded"))

    assert cluster.log("p") == "x y $(A) $(B)"


@shared
async def test_a_container_starts_in_its_working_directory(cluster: ProcessCluster) -> None:
    mounts = [{"name": "v", "mountPath": "/absent/on/host"}]
    container = {"args": ["echo made > here; cat /absent/on/host/here"], "workingDir": "/absent/on/host"}
    await cluster.create(
        "p", {**container, "volumeMounts": mounts}, volumes=[{"name": "v", "emptyDir": {}}], restartPolicy="Never"
    )

    await cluster.wait("p", has_phase("Succeeded"))

    assert cluster.log("p") == "made"


@shared
async def test_volumes_have_the_files_of_their_sources(cluster: ProcessCluster) -> None:
    await cluster.client.create(config_map("settings", color="blue", size="large"))
    await cluster.client.create(secret("login", password="hidden"))
    items = [{"key": "color", "path": "deep/c", "mode": 0o600}]
    volumes: list[dict[str, Any]] = [
        {"name": "all", "configMap": {"name": "settings"}},
        {"name": "some", "configMap": {"name": "settings", "items": items}},
        {"name": "secret", "secret": {"secretName": "login"}},
        {"name": "down", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {
            "name": "both",
            "projected": {"sources": [{"configMap": {"name": "settings"}}, {"secret": {"name": "login"}}]},
        },
    ]
    mounts = [{"name": one["name"], "mountPath": f"/etc/konverge-test/{one['name']}"} for one in volumes]
    script = "cd /etc/konverge-test/all && cat color; echo; cat /etc/konverge-test/secret/password; echo; "
    script += "cat /etc/konverge-test/down/labels; echo; ls /etc/konverge-test/both; ls /etc/konverge-test/some"
    await cluster.create(
        "p", {"args": [script], "volumeMounts": mounts}, volumes=volumes, labels={"app": "web"}, restartPolicy="Never"
    )

    await cluster.wait("p", has_phase("Succeeded"))

    assert cluster.log("p").split() == ["blue", "hidden", 'app="web"', "color", "password", "size", "deep"]
    some = cluster.process_pod("p").sandbox.directory / "volumes" / "some" / "deep" / "c"
    assert some.stat().st_mode & 0o777 == 0o600


@shared
async def test_volumes_follow_their_sources(cluster: ProcessCluster) -> None:
    await cluster.client.create(config_map("settings", color="blue"))
    container = {
        "args": [f"cat /etc/konverge-test/color; {SLEEP}"],
        "volumeMounts": [{"name": "v", "mountPath": "/etc/konverge-test"}],
    }
    await cluster.create("p", container, volumes=[{"name": "v", "configMap": {"name": "settings"}}])
    await cluster.wait("p", is_ready)

    await cluster.client.patch("configmaps", "settings", {"data": {"color": "red", "size": "small"}})

    async def color() -> str:
        return await cluster.execute(
            "p", "sh", "-c", "cat /etc/konverge-test/color /etc/konverge-test/size 2>&1 || true"
        )

    await cluster.until_async(color, "redsmall")


@shared
async def test_a_missing_volume_source_is_reported_and_awaited(cluster: ProcessCluster) -> None:
    container = {"args": ["cat /cfg/a"], "volumeMounts": [{"name": "v", "mountPath": "/cfg"}]}
    volumes = [{"name": "v", "configMap": {"name": "late"}}]
    await cluster.create("p", container, volumes=volumes, restartPolicy="Never")
    await cluster.wait("p", waits_for("ContainerCreating"))

    await cluster.client.create(config_map("late", a="1"))

    await cluster.wait("p", has_phase("Succeeded"))


@shared
async def test_a_sub_path_is_a_part_of_its_volume(cluster: ProcessCluster) -> None:
    volumes = [{"name": "v", "emptyDir": {}}]
    mounts = [
        {"name": "v", "mountPath": "/whole"},
        {"name": "v", "mountPath": "/part", "subPath": "inside"},
    ]
    script = "echo text > /part/file; cat /whole/inside/file"
    await cluster.create("p", {"args": [script], "volumeMounts": mounts}, volumes=volumes, restartPolicy="Never")

    await cluster.wait("p", has_phase("Succeeded"))

    assert cluster.log("p") == "text"


@shared
async def test_a_claim_keeps_its_data_when_the_pod_is_deleted(cluster: ProcessCluster) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await cluster.create_object(claim)
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/var/lib/konverge-test"}]}
    writer = {"args": ["echo kept > /var/lib/konverge-test/file"], **mounts}
    await cluster.create("writer", writer, volumes=volumes, restartPolicy="Never")
    await cluster.wait("writer", has_phase("Succeeded"))
    await cluster.delete("writer")
    await cluster.wait_until_gone("writer")

    reader = {"args": ["cat /var/lib/konverge-test/file"], **mounts}
    await cluster.create("reader", reader, volumes=volumes, restartPolicy="Never")

    await cluster.wait("reader", has_phase("Succeeded"))
    assert cluster.log("reader") == "kept"


@shared
async def test_an_empty_dir_has_its_size_limit(cluster: ProcessCluster) -> None:
    volumes = [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]
    mounts = [{"name": "v", "mountPath": "/full"}]
    script = f"head -c 3000000 /dev/zero > /full/file || exit 9; {SLEEP}"
    await cluster.create("p", {"args": [script], "volumeMounts": mounts}, volumes=volumes, restartPolicy="Never")

    found = await cluster.wait("p", has_phase("Failed"))

    if cluster.runtime.namespaces:
        assert status_of(found)["state"]["terminated"]["exitCode"] == 9, "the file system is full"
    else:
        assert found["status"]["reason"] == "Evicted"
        assert 'Usage of EmptyDir volume "v" exceeds the limit "1Mi"' in found["status"]["message"]


@shared
async def test_a_pod_calls_the_api_server_as_its_service_account(cluster: ProcessCluster) -> None:
    place = "/var/run/secrets/kubernetes.io/serviceaccount"
    script = f"echo $KUBERNETES_SERVICE_HOST; cat {place}/token; echo; cat {place}/namespace; echo"
    script = f"{script}; cat $KUBECONFIG < /dev/null; echo; echo end; {SLEEP}"
    await cluster.create_object({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    await cluster.create("p", {"args": [script]}, automountServiceAccountToken=True, serviceAccountName="robot")

    # It keeps running: the address in its kubeconfig is a proxy that ends with the pod.
    await cluster.until_log("p", "end")

    host, token, namespace, *kubeconfig, _ = cluster.log("p").splitlines()
    assert (host, namespace, token.count(".")) == ("127.0.0.1", cluster.namespace, 2)
    if cluster.runtime.namespaces:
        assert kubeconfig == [""]
        return
    ((user,),) = ([one["user"] for one in json.loads(text)["users"]] for text in kubeconfig)
    assert set(user) == {"client-certificate-data", "client-key-data"}, "a token ends after an hour"
    config = load_config(kubeconfig=str(cluster.process_pod("p").sandbox.directory / "kubeconfig-c"))
    async with Client.connect(config) as own:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        found = (await own.create(Unstructured(review)))["status"]["userInfo"]
    assert found["username"] == f"system:serviceaccount:{cluster.namespace}:robot"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{cluster.namespace}", "system:authenticated"]
    assert found["groups"] == groups
