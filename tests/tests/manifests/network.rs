//! What refers to pods by their labels: services, disruption budgets, autoscalers, network
//! policies.

use serde_norway::Value;

use crate::source::{Manifests, Workload};
use crate::yaml::{at, items, number, selects, text, texts};

/// Where NodeLocal DNSCache answers on every node. It is an address of the node, which no selector
/// of pods or namespaces matches.
const NODE_LOCAL_DNS: &str = "169.254.20.10/32";

/// What the gateway shares its calls among (docs/replicas.md).
const CALLED: [&str; 4] = ["autoact-plan-agent", "autoact-tool-agent", "autoact-reflect-agent", "autoact-memory"];

pub(crate) fn check(manifests: &Manifests, complaints: &mut Vec<String>) {
    for service in manifests.of_kind("Service") {
        self::service(manifests, service, complaints);
    }
    for budget in manifests.of_kind("PodDisruptionBudget") {
        if selected(manifests, &texts(budget, "spec.selector.matchLabels")).len() != 1 {
            complaints.push(format!("PodDisruptionBudget {}: it must select one workload", name(budget)));
        }
    }
    for scaler in manifests.of_kind("HorizontalPodAutoscaler") {
        let target = text(scaler, "spec.scaleTargetRef.name").unwrap_or_default();
        match manifests.named("Deployment", target) {
            None => complaints.push(format!("HorizontalPodAutoscaler {}: there is no Deployment `{target}`", name(scaler))),
            Some(deployment) if at(deployment, "spec.replicas").is_some() => {
                complaints.push(format!("{target}: `replicas` would set back what its autoscaler chose"));
            }
            Some(_) => {}
        }
    }
    let policies: Vec<&Value> = manifests.of_kind("NetworkPolicy").collect();
    for policy in &policies {
        network_policy(manifests, policy, complaints);
    }
    if !policies.is_empty() {
        secluded(manifests, &policies, complaints);
    }
}

fn name(object: &Value) -> &str {
    text(object, "metadata.name").unwrap_or_default()
}

fn selected<'a>(manifests: &'a Manifests, selector: &[(String, String)]) -> Vec<Workload<'a>> {
    manifests.workloads().into_iter().filter(|workload| selects(selector, &workload.labels())).collect()
}

fn service(manifests: &Manifests, service: &Value, complaints: &mut Vec<String>) {
    let [workload] = selected(manifests, &texts(service, "spec.selector"))[..] else {
        complaints.push(format!("Service {}: it must select one workload", name(service)));
        return;
    };
    // a name with one address would be one connection, and so one pod
    if CALLED.contains(&name(service)) && text(service, "spec.clusterIP") != Some("None") {
        complaints.push(format!("Service {}: it must be headless", name(service)));
    }
    for port in items(service, "spec.ports") {
        let target = text(port, "targetPort").unwrap_or_default();
        // the same number inside and outside: one number in the documentation
        let wanted = number(port, "port").map(|number| (target.to_owned(), number));
        if wanted.is_none_or(|wanted| !workload.ports().contains(&wanted)) || text(port, "name") != Some(target) {
            complaints.push(format!("Service {}: `{}` has no port `{target}` of that number", name(service), workload.name));
        }
    }
}

fn network_policy(manifests: &Manifests, policy: &Value, complaints: &mut Vec<String>) {
    let targets = selected(manifests, &texts(policy, "spec.podSelector.matchLabels"));
    if targets.is_empty() {
        complaints.push(format!("NetworkPolicy {}: it selects nothing", name(policy)));
    }
    let has =
        |workloads: &[Workload<'_>], port: u64| workloads.iter().any(|workload| workload.ports().iter().any(|(_, number)| *number == port));
    for (rules, peers) in [("spec.ingress", "from"), ("spec.egress", "to")] {
        for rule in items(policy, rules) {
            let named: Vec<Workload<'_>> = items(rule, peers)
                .filter(|peer| peer.get("podSelector").is_some())
                .flat_map(|peer| {
                    let found = selected(manifests, &texts(peer, "podSelector.matchLabels"));
                    if found.is_empty() {
                        complaints.push(format!("NetworkPolicy {}: a peer selects nothing", name(policy)));
                    }
                    found
                })
                .collect();
            let listeners = if peers == "from" { &targets } else { &named };
            for port in items(rule, "ports").filter_map(|port| number(port, "port")) {
                if !listeners.is_empty() && !named.is_empty() && !has(listeners, port) {
                    complaints.push(format!("NetworkPolicy {}: nobody listens on port {port}", name(policy)));
                }
            }
        }
    }
}

/// Who may be reached, and who may leave: the two rules the production overlay promises.
fn secluded(manifests: &Manifests, policies: &[&Value], complaints: &mut Vec<String>) {
    let about = |workload: &Workload<'_>, kind: &'static str| {
        let labels = workload.labels();
        let own: Vec<&Value> =
            policies.iter().copied().filter(|policy| selects(&texts(policy, "spec.podSelector.matchLabels"), &labels)).collect();
        own.into_iter()
            .filter(move |policy| items(policy, "spec.policyTypes").any(|named| named.as_str() == Some(kind)))
            .collect::<Vec<_>>()
    };
    for workload in manifests.workloads() {
        for kind in ["Ingress", "Egress"] {
            if about(&workload, kind).is_empty() {
                complaints.push(format!("{}: no policy restricts its {kind}", workload.name));
            }
        }
        let leaves = about(&workload, "Egress").iter().any(|policy| {
            let peers = items(policy, "spec.egress").flat_map(|rule| items(rule, "to"));
            peers.filter_map(|peer| text(peer, "ipBlock.cidr")).any(|network| network != NODE_LOCAL_DNS)
        });
        if leaves != (workload.name == "autoact-tool-agent") {
            complaints.push(format!("{}: only tool-agent may leave the cluster", workload.name));
        }
        let open = about(&workload, "Ingress").iter().any(|policy| {
            items(policy, "spec.ingress").any(|rule| {
                items(rule, "from").any(|peer| texts(peer, "namespaceSelector.matchLabels").is_empty() && peer.get("podSelector").is_none())
            })
        });
        if open != (workload.name == "autoact-gateway") {
            complaints.push(format!("{}: only the gateway is open to the cluster", workload.name));
        }
    }
}

/// With a server elsewhere that runs the models, the agents may reach its namespace at its port.
pub(crate) fn the_server_can_be_reached(manifests: &Manifests) -> anyhow::Result<()> {
    let config = manifests.of_kind("ConfigMap").find(|map| name(map).starts_with("autoact-config"));
    let settings = config.map(|map| texts(map, "data")).unwrap_or_default();
    let policy = manifests.named("NetworkPolicy", "autoact-agents-backend");
    let rules: Vec<&Value> = policy.into_iter().flat_map(|policy| items(policy, "spec.egress")).collect();
    for (variable, url) in settings.iter().filter(|(variable, _)| variable.ends_with("__BACKEND__URL")) {
        let authority = url.split('/').nth(2).unwrap_or_default();
        let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
        let namespace = host.split('.').nth(1).unwrap_or_default();
        let open = rules.iter().any(|rule| {
            let label = ("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
            let there = items(rule, "to").any(|peer| texts(peer, "namespaceSelector.matchLabels").contains(&label));
            there && items(rule, "ports").any(|own| number(own, "port").is_some_and(|own| own.to_string() == port))
        });
        anyhow::ensure!(open, "no policy lets the agents reach `{url}` (`{variable}`)");
    }
    Ok(())
}
