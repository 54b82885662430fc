//! `components/shared-prefixes`: one claim for the agents of a node.

use anyhow::Context as _;
use serde_norway::Value;

use crate::source::Manifests;
use crate::yaml::{at, items, number, text, texts};

/// Where the directory is mounted.
const PREFIXES: &str = "/var/lib/autoact/prefixes";

/// Every agent mounts the claim where its setting says, and only Tool-Agent cannot write there. The
/// claim's volume is local to the nodes that are labelled for it.
pub(crate) fn are_shared(manifests: &Manifests) -> anyhow::Result<()> {
    let settings: Vec<_> = manifests.of_kind("ConfigMap").flat_map(|map| texts(map, "data")).collect();
    for agent in ["plan", "tool", "reflect"] {
        let name = format!("autoact-{agent}-agent");
        let deployment = manifests.named("Deployment", &name).with_context(|| format!("there is a Deployment `{name}`"))?;
        let setting = format!("AUTOACT_{}_AGENT__ENGINE__SHARED_PREFIXES", agent.to_uppercase());
        let said = settings.iter().find(|(name, _)| *name == setting).map(|(_, value)| value.as_str());
        anyhow::ensure!(said == Some(PREFIXES), "{setting} is {said:?}");

        let reads_only = agent == "tool";
        let flag = |value: &Value, path: &str| at(value, path).and_then(Value::as_bool) == Some(true);
        let mut mounts = items(deployment, "spec.template.spec.containers.0.volumeMounts");
        let mount = mounts.find(|mount| text(mount, "mountPath") == Some(PREFIXES)).with_context(|| format!("{name} mounts {PREFIXES}"))?;
        let mut volumes = items(deployment, "spec.template.spec.volumes");
        let volume =
            volumes.find(|volume| text(volume, "name") == text(mount, "name")).with_context(|| format!("{name} has its volume"))?;
        anyhow::ensure!(text(volume, "persistentVolumeClaim.claimName") == Some("autoact-prefixes"), "{name} mounts another claim");
        let read_only = (flag(mount, "readOnly"), flag(volume, "persistentVolumeClaim.readOnly"));
        anyhow::ensure!(read_only == (reads_only, reads_only), "{name}: read only is {read_only:?}");
        let writes = number(deployment, "spec.template.spec.securityContext.fsGroup");
        anyhow::ensure!(writes == Some(10001), "{name} is of the group {writes:?}, which cannot write the directory");
    }
    let claim = manifests.named("PersistentVolumeClaim", "autoact-prefixes").context("there is the claim")?;
    let volume =
        text(claim, "spec.volumeName").and_then(|name| manifests.named("PersistentVolume", name)).context("there is its volume")?;
    anyhow::ensure!(text(claim, "spec.storageClassName") == text(volume, "spec.storageClassName"), "the claim is of another class");
    anyhow::ensure!(text(volume, "spec.local.path").is_some() && at(volume, "spec.nodeAffinity.required").is_some(), "it is not local");
    Ok(())
}
