//! The Kubernetes manifests against what they deploy: the ports, variables and programs of the real
//! binaries.
//!
//! `base` is read by this test itself, so that it is always checked. What kustomize makes of the
//! base and of the overlays is checked where a kustomize is at hand; `./test` gets one
//! (`scripts/fetch-kustomize`).

mod access;
mod binaries;
mod jobs;
mod network;
mod pods;
mod prefixes;
mod source;
mod yaml;

use anyhow::Context as _;

use crate::source::Manifests;

/// Every check of a set of manifests; all complaints together.
fn check(manifests: &Manifests) -> anyhow::Result<()> {
    let mut complaints = Vec::new();
    pods::check(manifests, &mut complaints);
    network::check(manifests, &mut complaints);
    jobs::check(manifests, &mut complaints)?;
    binaries::check(manifests, &mut complaints)?;
    anyhow::ensure!(complaints.is_empty(), "{}:\n- {}", manifests.name, complaints.join("\n- "));
    Ok(())
}

#[test]
fn the_base_fits_the_programs() -> anyhow::Result<()> {
    let base = Manifests::of_base()?;
    for (kind, least) in [("Deployment", 5), ("StatefulSet", 2), ("Service", 7), ("PodDisruptionBudget", 7), ("ConfigMap", 2)] {
        let count = base.of_kind(kind).count();
        assert!(count >= least, "expected {least} of kind {kind}, found {count}");
    }
    check(&base)
}

#[test]
fn everything_that_kustomize_makes_fits_the_programs() -> anyhow::Result<()> {
    let Some(kustomize) = source::kustomize() else {
        println!("SKIPPED: no kustomize or kubectl found; `scripts/fetch-kustomize` gets one");
        return Ok(());
    };
    for directory in ["base", "overlays/local", "overlays/production"] {
        check(&Manifests::rendered(&kustomize, directory)?).with_context(|| format!("k8s/{directory}"))?;
    }
    let production = Manifests::rendered(&kustomize, "overlays/production")?;
    assert_eq!(production.of_kind("HorizontalPodAutoscaler").count(), 4);
    let local = Manifests::rendered(&kustomize, "overlays/local")?;
    assert_eq!(local.of_kind("StatefulSet").count(), 1, "no Qdrant beside the embedded store");
    Ok(())
}

#[test]
fn the_remote_component_fits_the_programs() -> anyhow::Result<()> {
    let Some(kustomize) = source::kustomize() else {
        println!("SKIPPED: no kustomize or kubectl found; `scripts/fetch-kustomize` gets one");
        return Ok(());
    };
    for (overlay, components) in [("local", &["remote"][..]), ("production", &["remote", "remote-egress"])] {
        let dir = source::with_components(overlay, components)?;
        let manifests = Manifests::rendered(&kustomize, &dir.path().display().to_string())?;
        check(&manifests).with_context(|| format!("k8s/overlays/{overlay} with components/remote"))?;
        for agent in ["plan", "tool", "reflect"] {
            let name = format!("autoact-{agent}-agent");
            let deployment = manifests.named("Deployment", &name).with_context(|| format!("there is a Deployment `{name}`"))?;
            let secret = yaml::text(deployment, "spec.template.spec.containers.0.envFrom.1.secretRef.name");
            anyhow::ensure!(secret == Some("autoact-backend"), "{name} has no key: {secret:?}");
        }
        if overlay == "production" {
            network::the_server_can_be_reached(&manifests)?;
        }
    }
    Ok(())
}

#[test]
fn the_tls_component_fits_the_programs() -> anyhow::Result<()> {
    let Some(kustomize) = source::kustomize() else {
        println!("SKIPPED: no kustomize or kubectl found; `scripts/fetch-kustomize` gets one");
        return Ok(());
    };
    // the production overlay has it already
    for (overlay, components) in [("local", &["tls", "cert-manager"][..]), ("production", &["cert-manager"])] {
        let dir = source::with_components(overlay, components)?;
        let manifests = Manifests::rendered(&kustomize, &dir.path().display().to_string())?;
        check(&manifests).with_context(|| format!("k8s/overlays/{overlay} with components/tls"))?;
        for service in ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory"] {
            let deployment = manifests.named("Deployment", &format!("autoact-{service}")).context("there is a Deployment")?;
            let volumes = yaml::items(deployment, "spec.template.spec.volumes");
            let mut secrets = volumes.filter_map(|volume| yaml::text(volume, "secret.secretName"));
            let secret = secrets.find(|secret| secret.ends_with("-tls"));
            anyhow::ensure!(secret == Some(&format!("autoact-{service}-tls")), "{service} has no certificate of its own: {secret:?}");
            let service_object = manifests.named("Service", &format!("autoact-{service}")).context("there is a Service")?;
            let protocol = yaml::text(service_object, "spec.ports.0.appProtocol");
            anyhow::ensure!(protocol == Some("https"), "{service} is said to speak {protocol:?}");
            let certificate = manifests.named("Certificate", &format!("autoact-{service}")).context("there is a Certificate")?;
            anyhow::ensure!(yaml::text(certificate, "spec.secretName") == secret, "{service}: the certificate is another Secret's");
            // the first says who it is, the second is the host of the addresses
            let names: Vec<_> = yaml::items(certificate, "spec.dnsNames").filter_map(serde_norway::Value::as_str).collect();
            anyhow::ensure!(names == [service, &format!("autoact-{service}")], "{service} is certified as {names:?}");
            let issuer = yaml::text(certificate, "spec.issuerRef.name").unwrap_or_default();
            anyhow::ensure!(manifests.named("Issuer", issuer).is_some(), "{service}: there is no issuer `{issuer}`");
        }
    }
    Ok(())
}

#[test]
fn nats_has_logins_and_three_servers_in_production_and_speaks_tls_where_that_is_added() -> anyhow::Result<()> {
    let Some(kustomize) = source::kustomize() else {
        println!("SKIPPED: no kustomize or kubectl found; `scripts/fetch-kustomize` gets one");
        return Ok(());
    };
    let secrets = |manifests: &Manifests, kind: &str, name: &str| -> anyhow::Result<Vec<String>> {
        let object = manifests.named(kind, name).with_context(|| format!("there is a {kind} `{name}`"))?;
        let volumes = yaml::items(object, "spec.template.spec.volumes");
        Ok(volumes.filter_map(|volume| yaml::text(volume, "secret.secretName").map(str::to_owned)).collect())
    };
    let production = Manifests::rendered(&kustomize, "overlays/production")?;
    let nats = production.named("StatefulSet", "autoact-nats").context("there is a NATS")?;
    assert_eq!((yaml::number(nats, "spec.replicas"), yaml::text(nats, "spec.podManagementPolicy")), (Some(3), Some("Parallel")));
    let stop = "spec.template.spec.containers.0.lifecycle.preStop.exec.command.1";
    assert_eq!(yaml::text(nats, stop), Some("-sl=ldm=/tmp/nats.pid"));
    let settings = production.of_kind("ConfigMap").flat_map(|map| yaml::texts(map, "data")).collect::<std::collections::BTreeMap<_, _>>();
    assert_eq!(settings["AUTOACT_GATEWAY__BUS__REPLICAS"], "3");
    assert!(
        settings["users.conf"].contains("include \"../nats-users/users.conf\"") && settings["nats.conf"].contains("include \"users.conf\"")
    );
    assert!(settings["nats.conf"].contains("pid_file: \"/tmp/nats.pid\""));

    for (overlay, components) in [("local", &["nats-users", "tls", "nats-tls"][..]), ("production", &["nats-tls"])] {
        let dir = source::with_components(overlay, components)?;
        let manifests = Manifests::rendered(&kustomize, &dir.path().display().to_string())?;
        check(&manifests).with_context(|| format!("k8s/overlays/{overlay} with {components:?}"))?;
        assert_eq!(secrets(&manifests, "StatefulSet", "autoact-nats")?, ["autoact-nats-users", "autoact-nats-tls"]);
        for service in ["gateway", "tool-agent"] {
            let mounted = secrets(&manifests, "Deployment", &format!("autoact-{service}"))?;
            let mut expected = vec![format!("autoact-{service}-nats"), format!("autoact-{service}-tls")];
            // who may ask
            expected.extend((overlay == "production" && service == "gateway").then(|| "autoact-access".to_owned()));
            assert_eq!(mounted, expected);
        }
        for service in ["plan-agent", "reflect-agent", "memory"] {
            assert_eq!(secrets(&manifests, "Deployment", &format!("autoact-{service}"))?, [format!("autoact-{service}-tls")]);
        }
    }
    // the servers' certificate has the hosts that clients and other servers call
    let dir = source::with_components("production", &["nats-tls", "cert-manager"])?;
    let manifests = Manifests::rendered(&kustomize, &dir.path().display().to_string())?;
    let certificate = manifests.named("Certificate", "autoact-nats").context("there is a Certificate")?;
    let names: Vec<_> = yaml::items(certificate, "spec.dnsNames").filter_map(serde_norway::Value::as_str).collect();
    assert_eq!(
        (yaml::text(certificate, "spec.secretName"), &names[1..]),
        (Some("autoact-nats-tls"), &["autoact-nats", "*.autoact-nats"][..])
    );
    Ok(())
}

#[test]
fn who_learns_writes_the_adapters_that_the_agents_read() -> anyhow::Result<()> {
    let Some(kustomize) = source::kustomize() else {
        println!("SKIPPED: no kustomize or kubectl found; `scripts/fetch-kustomize` gets one");
        return Ok(());
    };
    for overlay in ["local", "production"] {
        let dir = source::with_components(overlay, &["adapters", "learn"])?;
        let manifests = Manifests::rendered(&kustomize, &dir.path().display().to_string())?;
        check(&manifests).with_context(|| format!("k8s/overlays/{overlay} with components/adapters and components/learn"))?;
        anyhow::ensure!(manifests.of_kind("Job").count() == 0, "a Job cannot be applied again");
        jobs::shares_adapters(&manifests)?;
    }
    Ok(())
}

#[test]
fn pods_of_a_node_share_prefixes_and_tool_agent_only_reads_them() -> anyhow::Result<()> {
    let Some(kustomize) = source::kustomize() else {
        println!("SKIPPED: no kustomize or kubectl found; `scripts/fetch-kustomize` gets one");
        return Ok(());
    };
    for overlay in ["local", "production"] {
        let dir = source::with_components(overlay, &["shared-prefixes"])?;
        let manifests = Manifests::rendered(&kustomize, &dir.path().display().to_string())?;
        check(&manifests).with_context(|| format!("k8s/overlays/{overlay} with components/shared-prefixes"))?;
        prefixes::are_shared(&manifests)?;
    }
    Ok(())
}

#[test]
fn every_file_of_the_manifests_is_used_and_is_yaml() -> anyhow::Result<()> {
    source::every_file_is_used()
}
