//! What runs and ends: templates of Jobs.

use std::process::Command;

use anyhow::Context as _;
use autoact_testkit::files;
use serde_norway::Value;

use crate::source::Manifests;
use crate::yaml::{at, items, number, text, texts};

/// Where the registry of adapters is mounted.
const ADAPTERS: &str = "/var/lib/autoact/adapters";

pub(crate) fn check(manifests: &Manifests, complaints: &mut Vec<String>) -> anyhow::Result<()> {
    for template in manifests.of_kind("CronJob") {
        let name = text(template, "metadata.name").unwrap_or_default();
        let mut complain = |what: String| complaints.push(format!("CronJob {name}: {what}"));
        let job = at(template, "spec.jobTemplate.spec").unwrap_or(&Value::Null);
        if number(job, "ttlSecondsAfterFinished").is_none() {
            complain("its Jobs stay for ever".to_owned());
        }
        if text(job, "template.spec.restartPolicy") != Some("Never") {
            complain("a container that is started again is counted as no failure".to_owned());
        }
        let pod = at(job, "template.spec").unwrap_or(&Value::Null);
        let claims = items(pod, "volumes").filter_map(|volume| text(volume, "persistentVolumeClaim.claimName"));
        for claim in claims.filter(|claim| manifests.named("PersistentVolumeClaim", claim).is_none()) {
            complain(format!("there is no PersistentVolumeClaim `{claim}`"));
        }
        for container in items(pod, "containers") {
            program(manifests, container, &mut complain)?;
        }
    }
    Ok(())
}

/// It exists, and takes every variable that it is given; its paths are in the image or mounted.
fn program(manifests: &Manifests, container: &Value, complain: &mut impl FnMut(String)) -> anyhow::Result<()> {
    let name = text(container, "command.0").context("a container names its program")?;
    let (path, first) = files::service(name)?;
    let output = Command::new(path).args(first).arg("--help").env_clear().output().with_context(|| format!("cannot run `{name}`"))?;
    // long lines are broken between words
    let help = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let maps = items(container, "envFrom").filter_map(|source| text(source, "configMapRef.name"));
    let mounts: Vec<&str> = items(container, "volumeMounts").filter_map(|mount| text(mount, "mountPath")).collect();
    for map in maps {
        let Some(map) = manifests.named("ConfigMap", map) else {
            complain(format!("there is no ConfigMap `{map}`"));
            continue;
        };
        for (variable, value) in texts(map, "data") {
            if !help.contains(&format!("env: {variable}=")) {
                complain(format!("`{name}` takes no variable `{variable}`"));
            }
            let placed = value.starts_with("/opt/autoact/") || mounts.iter().any(|mount| value.starts_with(mount));
            if value.starts_with('/') && !placed {
                complain(format!("`{value}` is on no volume, and the root file system is read-only"));
            }
        }
    }
    Ok(())
}

/// The claim with the adapters: written by who learns, read by the agents, and by many at once.
pub(crate) fn shares_adapters(manifests: &Manifests) -> anyhow::Result<()> {
    let learner = manifests.named("CronJob", "autoact-learn").context("there is a CronJob")?;
    let pod = at(learner, "spec.jobTemplate.spec.template.spec").context("it has a pod")?;
    let (claim, read_only) = mounted(pod).context("who learns has the adapters")?;
    anyhow::ensure!(!read_only, "who learns cannot write adapters");
    let volume = manifests.named("PersistentVolumeClaim", claim).context("there is the claim")?;
    let modes: Vec<_> = items(volume, "spec.accessModes").filter_map(Value::as_str).collect();
    anyhow::ensure!(modes == ["ReadWriteMany"], "`{claim}` is {modes:?}, and pods on several nodes use it");
    for agent in ["plan", "tool", "reflect"] {
        let deployment = manifests.named("Deployment", &format!("autoact-{agent}-agent")).context("there is a Deployment")?;
        let pod = at(deployment, "spec.template.spec").context("it has a pod")?;
        anyhow::ensure!(mounted(pod) == Some((claim, true)), "{agent}-agent does not read `{claim}`, or may write it");
    }
    Ok(())
}

/// The claim that is mounted as the adapters, and whether it is only read.
fn mounted(pod: &Value) -> Option<(&str, bool)> {
    let mount = items(pod, "containers").flat_map(|container| items(container, "volumeMounts"));
    let mount = mount.into_iter().find(|mount| text(mount, "mountPath") == Some(ADAPTERS))?;
    let volume = items(pod, "volumes").find(|volume| text(volume, "name") == text(mount, "name"))?;
    let read_only = at(mount, "readOnly").and_then(Value::as_bool).unwrap_or_default();
    Some((text(volume, "persistentVolumeClaim.claimName")?, read_only))
}
