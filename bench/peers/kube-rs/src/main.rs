//! The reflector of kube-rs, measured from inside.
//!
//! Called as: kube-rs-peer <kubeconfig> <pods|widgets> <count>. Prints one line of JSON; see bench/bench_cache.py for what
//! each figure means. kube-rs has no indexes: a read by node looks at every object, as its users do.

mod measuring;
mod widgets;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::hint::black_box;
use std::time::Instant;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use measuring::{a_second, cpu_seconds, memory, settle};
use widgets::Widget;

type Figures = BTreeMap<&'static str, f64>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (kubeconfig, what, count) = (&arguments[1], &arguments[2], arguments[3].parse()?);
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let figures = if what == "pods" {
        measure(Api::<Pod>::all(client), count, |pod| {
            pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
        })
        .await?
    } else {
        measure(Api::<Widget>::all(client), count, |widget| widget.spec.node_name.clone()).await?
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

async fn measure<K>(
    api: Api<K>,
    count: usize,
    node_of: impl Fn(&K) -> String,
) -> Result<Figures, Box<dyn std::error::Error>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    settle();
    let (base, began, cpu_before) = (memory("VmRSS"), Instant::now(), cpu_seconds());
    let (reader, writer) = reflector::store::<K>();
    let stream = kube::runtime::reflector(writer, watcher(api, watcher::Config::default())).default_backoff();
    tokio::spawn(stream.for_each(|_| async {}));
    reader.wait_until_ready().await?;
    let (wall, cpu, peak) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu_before, memory("VmHWM"));
    assert_eq!(reader.len(), count, "objects");
    settle();
    let mut figures = Figures::from([
        ("wall", wall),
        ("cpu", cpu),
        ("base", base),
        ("peak", peak),
        ("settled", memory("VmRSS")),
    ]);
    if count > 0 {
        measure_reading(&reader, &mut figures, node_of);
    }
    Ok(figures)
}

/// What a reader is handed is its own copy.
fn measure_reading<K>(reader: &Store<K>, figures: &mut Figures, node_of: impl Fn(&K) -> String)
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let keys: Vec<ObjectRef<K>> = reader.state().iter().map(|one| ObjectRef::from_obj(one.as_ref())).collect();
    let mut place = 0;
    figures.insert("get", a_second(|| {
        place = (place + 7919) % keys.len();
        black_box(reader.get(&keys[place]).map(|one| one.as_ref().clone()));
    }));
    figures.insert("list", a_second(|| {
        let state = reader.state();
        let chosen = state.iter().filter(|one| one.labels().get("app").is_some_and(|app| app == "app-7"));
        black_box(chosen.map(|one| one.as_ref().clone()).collect::<Vec<_>>());
    }));
    figures.insert("index", a_second(|| {
        let state = reader.state();
        let chosen = state.iter().filter(|one| node_of(one) == "node-7");
        black_box(chosen.map(|one| one.as_ref().clone()).collect::<Vec<_>>());
    }));
}
