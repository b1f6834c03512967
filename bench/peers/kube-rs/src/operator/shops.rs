//! The custom resource of the benchmark, and what a shop consists of.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[kube(group = "bench.example.com", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
pub struct ShopSpec {
    pub image: String,
    pub replicas: i32,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShopStatus {
    pub observed_generation: i64,
    pub ready: i32,
}

fn labels_of(shop: &Shop) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".into(), shop.name_any()),
        ("app.kubernetes.io/managed-by".into(), "shop-operator".into()),
    ])
}

fn metadata_for(shop: &Shop) -> ObjectMeta {
    ObjectMeta {
        name: Some(shop.name_any()),
        namespace: shop.namespace(),
        labels: Some(labels_of(shop)),
        owner_references: shop.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

pub fn deployment_for(shop: &Shop) -> Deployment {
    let container = Container {
        name: "web".into(),
        image: Some(shop.spec.image.clone()),
        ports: Some(vec![ContainerPort {
            name: Some("http".into()),
            container_port: 8080,
            ..ContainerPort::default()
        }]),
        ..Container::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels_of(shop)), ..ObjectMeta::default() }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    };
    Deployment {
        metadata: metadata_for(shop),
        spec: DeploymentSpec {
            replicas: Some(shop.spec.replicas),
            selector: LabelSelector { match_labels: Some(labels_of(shop)), ..LabelSelector::default() },
            template,
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

pub fn service_for(shop: &Shop) -> Service {
    let port = ServicePort {
        name: Some("http".into()),
        port: 80,
        target_port: Some(IntOrString::String("http".into())),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata_for(shop),
        spec: Some(ServiceSpec {
            selector: Some(labels_of(shop)),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
