//! The manifests' programs, variables, ports and addresses against the programs themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::files;
use serde_norway::Value;

use crate::access;
use crate::source::{Manifests, Workload};
use crate::yaml::{items, number, text, texts};

/// The image that holds our programs.
const IMAGE: &str = "autoact";

pub(crate) fn check(manifests: &Manifests, complaints: &mut Vec<String>) -> anyhow::Result<()> {
    let dockerfile = std::fs::read_to_string(files::root().join("Dockerfile"))?;
    let mut given = BTreeSet::new();
    let mut used = BTreeSet::new();
    for workload in manifests.workloads() {
        for container in items(workload.pod(), "containers") {
            let image = text(container, "image").unwrap_or_default();
            if image.split(':').next() == Some(IMAGE) {
                let service = Service { manifests, workload, container, dockerfile: &dockerfile };
                service.check(complaints, &mut given, &mut used)?;
            }
        }
    }
    for unused in given.difference(&used) {
        complaints.push(format!("no program takes the variable `{unused}`"));
    }
    Ok(())
}

struct Service<'a> {
    manifests: &'a Manifests,
    workload: Workload<'a>,
    container: &'a Value,
    dockerfile: &'a str,
}

impl Service<'_> {
    fn check(&self, complaints: &mut Vec<String>, given: &mut BTreeSet<String>, used: &mut BTreeSet<String>) -> anyhow::Result<()> {
        let mut complain = |what: String| complaints.push(format!("{}: {what}", self.workload.name));
        let Some(program) = text(self.container, "command.0") else {
            complain("a container names its program".to_owned());
            return Ok(());
        };
        let copies = |line: &str| line.contains("for bin in") || line.contains("for agent in");
        if !self.dockerfile.lines().any(|line| copies(line) && line.split([' ', ';']).any(|word| word == program)) {
            complain(format!("the Dockerfile does not copy `{program}` into the image"));
        }
        let env = self.environment();
        given.extend(env.keys().filter(|name| name.starts_with("AUTOACT_")).cloned());
        let args = items(self.container, "command").skip(1).chain(items(self.container, "args")).filter_map(Value::as_str);
        let (path, first) = files::service(program)?;
        let output = Command::new(path)
            .args(first)
            .args(args)
            .arg("--print-config")
            .env_clear()
            .envs(&env)
            .output()
            .with_context(|| format!("cannot run `{program}`"))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            complain(format!("`{program}` refuses its configuration: {}", String::from_utf8_lossy(&output.stderr)));
            return Ok(());
        }
        used.extend(env.keys().filter(|name| printed.contains(&format!("variable `{name}`"))).cloned());
        let config: toml::Table = printed.parse().with_context(|| format!("what `{program} --print-config` prints is TOML"))?;
        let config = config.get(program).and_then(toml::Value::as_table).with_context(|| format!("`{program}` prints its section"))?;
        self.addresses(config, &mut complain);
        self.grace(config, &mut complain);
        self.starts(config, &mut complain);
        if program == "gateway" && access::is_production(self.manifests) {
            access::check_gateway(config, &mut complain);
        }
        let mut config = config.clone();
        if config.get("store").and_then(toml::Value::as_str) == Some("embedded") {
            // the address of a store that is not used
            config.remove("qdrant");
        }
        // a server that runs the models is not among these manifests
        config.remove("backend");
        for value in leaves(&toml::Value::Table(config)) {
            self.value(&value, &mut complain);
        }
        Ok(())
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for source in items(self.container, "envFrom") {
            let map = text(source, "configMapRef.name").and_then(|name| self.manifests.named("ConfigMap", name));
            env.extend(map.map(|map| texts(map, "data")).unwrap_or_default());
        }
        let own = items(self.container, "env");
        env.extend(own.filter_map(|variable| Some((text(variable, "name")?.to_owned(), text(variable, "value")?.to_owned()))));
        env
    }

    /// It listens where the container, the probes and Prometheus say, on every address.
    fn addresses(&self, config: &toml::Table, complain: &mut impl FnMut(String)) {
        let annotations = texts(self.workload.template(), "metadata.annotations");
        let annotated = annotations.iter().find(|(name, _)| name == "prometheus.io/port").map(|(_, port)| port.as_str());
        for (key, port) in [("listen", "grpc"), ("metrics_listen", "metrics")] {
            let address = config.get(key).and_then(toml::Value::as_str).and_then(|address| address.parse::<SocketAddr>().ok());
            let Some(address) = address else {
                complain(format!("its configuration has no `{key}`"));
                continue;
            };
            if !address.ip().is_unspecified() {
                complain(format!("`{key}` is `{address}`: nobody outside the pod can reach it"));
            }
            if !self.workload.ports().contains(&(port.to_owned(), u64::from(address.port()))) {
                complain(format!("it listens on {} for {port}, its container says {:?}", address.port(), self.workload.ports()));
            }
            if port == "metrics" && annotated != Some(address.port().to_string().as_str()) {
                complain(format!("Prometheus is told port {annotated:?}, metrics are on {}", address.port()));
            }
        }
    }

    /// The pod waits longer than the service drains.
    fn grace(&self, config: &toml::Table, complain: &mut impl FnMut(String)) {
        let own = config.get("grace_period").and_then(toml::Value::as_str).and_then(|text| text.strip_suffix('s')?.parse::<u64>().ok());
        let sleep = text(self.container, "lifecycle.preStop.exec.command.1").and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
        let pod = number(self.workload.pod(), "terminationGracePeriodSeconds").unwrap_or(30);
        // effects that run are not cut off: the longest default deadline of a tool, and its receipts
        let effects = if self.workload.name == "tool-agent" { 30 + 10 } else { 0 };
        // a few seconds to flush traces
        if own.is_none_or(|own| own + sleep + effects + 5 > pod) {
            complain(format!("it may drain for {own:?} s after {sleep} s, the pod is killed after {pod} s"));
        }
    }

    /// It gives up by itself, with an error that says why, before its start-up probe does. An agent
    /// that reads weights may take any time, so its start-up probe asks only whether it lives.
    fn starts(&self, config: &toml::Table, complain: &mut impl FnMut(String)) {
        if config.contains_key("engine") && text(self.container, "startupProbe.httpGet.path") != Some("/livez") {
            complain("its start-up probe ends it while it reads weights".to_owned());
        }
        let own = config.get("start_limit").and_then(toml::Value::as_str).and_then(|text| autoact_config::duration::parse(text).ok());
        let probe = |field: &str| number(self.container, &format!("startupProbe.{field}")).unwrap_or_default();
        let pod = Duration::from_secs(probe("periodSeconds") * probe("failureThreshold"));
        if own.is_none_or(|own| own >= pod) {
            complain(format!("it may wait for {own:?} at its start, the start-up probe gives it {pod:?}"));
        }
    }

    /// An address is a Service's with that port, and a path is one the image has.
    fn value(&self, value: &str, complain: &mut impl FnMut(String)) {
        if value.contains("://") {
            for address in value.split(',') {
                let (_, rest) = address.split_once("://").unwrap_or_default();
                let authority = rest.split('/').next().unwrap_or_default();
                let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
                // a pod of a StatefulSet is called `<pod>.<service>`
                let service = self.manifests.named("Service", host.split_once('.').map_or(host, |(_, service)| service));
                if !service.is_some_and(|service| {
                    items(service, "spec.ports").any(|own| number(own, "port").is_some_and(|own| own.to_string() == port))
                }) {
                    complain(format!("`{address}` is no Service with that port"));
                }
            }
        } else if let Some(path) = value.strip_prefix("/opt/autoact/") {
            let copied = self.dockerfile.lines().filter_map(|line| line.strip_prefix("COPY ")).any(|line| {
                let mut words = line.split_whitespace();
                let (from, to) = (words.next(), words.next());
                from.is_some_and(|from| path.starts_with(from)) && to.is_some_and(|to| value.starts_with(to))
            });
            if !copied {
                complain(format!("the Dockerfile copies nothing to `{value}`"));
            }
        } else if value.starts_with('/') {
            let mounts: Vec<&str> = items(self.container, "volumeMounts").filter_map(|mount| text(mount, "mountPath")).collect();
            if !mounts.iter().any(|mount| value.starts_with(mount)) {
                complain(format!("`{value}` is on no volume, and the root file system is read-only"));
            }
        }
    }
}

/// Every text in a configuration.
fn leaves(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::String(text) => vec![text.clone()],
        toml::Value::Array(items) => items.iter().flat_map(leaves).collect(),
        toml::Value::Table(table) => table.values().flat_map(leaves).collect(),
        _ => Vec::new(),
    }
}
