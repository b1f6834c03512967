//! The shop operator of the benchmark on kube-rs; see bench/bench_controller.py.
//!
//! The cluster is that of KUBECONFIG; SHOP_RESYNC is how many seconds after a reconcile an object is looked at again, 0
//! for never; SHOP_STAMPS is a file that the start of each reconcile goes to.

mod shops;

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use shops::{Shop, ShopStatus, deployment_for, service_for};

struct Shared {
    client: Client,
    resync: f64,
    stamps: File,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let shared = Arc::new(Shared {
        client: client.clone(),
        resync: env::var("SHOP_RESYNC")?.parse()?,
        stamps: OpenOptions::new().append(true).create(true).open(env::var("SHOP_STAMPS")?)?,
    });
    Controller::new(Api::<Shop>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Service>::all(client), watcher::Config::default())
        .with_config(Config::default().concurrency(8))
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), shared)
        .for_each(|result| async move {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
    Ok(())
}

async fn reconcile(shop: Arc<Shop>, shared: Arc<Shared>) -> Result<Action, kube::Error> {
    stamp(&shared.stamps, &shop);
    let (name, namespace) = (shop.name_any(), shop.namespace().unwrap_or_default());
    let force = PatchParams::apply("shop-operator").force();
    let deployments = Api::<Deployment>::namespaced(shared.client.clone(), &namespace);
    let deployment = deployments.patch(&name, &force, &Patch::Apply(deployment_for(&shop))).await?;
    let services = Api::<Service>::namespaced(shared.client.clone(), &namespace);
    services.patch(&name, &force, &Patch::Apply(service_for(&shop))).await?;
    let status = ShopStatus {
        observed_generation: shop.metadata.generation.unwrap_or_default(),
        ready: deployment.status.and_then(|status| status.ready_replicas).unwrap_or_default(),
    };
    if shop.status.as_ref() != Some(&status) {
        let shops = Api::<Shop>::namespaced(shared.client.clone(), &namespace);
        let patch = Patch::Merge(json!({ "status": status }));
        shops.patch_status(&name, &PatchParams::default(), &patch).await?;
    }
    Ok(match shared.resync {
        0.0 => Action::await_change(),
        seconds => Action::requeue(Duration::from_secs_f64(seconds)),
    })
}

fn stamp(mut stamps: &File, shop: &Shop) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs_f64();
    let generation = shop.metadata.generation.unwrap_or_default();
    let line = format!("{} {generation} {now:.6}\n", shop.name_any());
    stamps.write_all(line.as_bytes()).expect("a file that takes a line");
}
