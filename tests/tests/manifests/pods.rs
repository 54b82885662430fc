//! What every pod must be: of the restricted profile, with bounds, with probes on ports that it
//! has.

use serde_norway::Value;

use crate::source::{Manifests, Workload};
use crate::yaml::{at, items, number, selects, text, texts};

pub(crate) fn check(manifests: &Manifests, complaints: &mut Vec<String>) {
    for workload in manifests.workloads() {
        let mut complain = |what: String| complaints.push(format!("{}: {what}", workload.name));
        pod(&workload, &mut complain);
        if !selects(&texts(workload.object, "spec.selector.matchLabels"), &workload.labels()) {
            complain("its selector does not select its own pods".to_owned());
        }
        for container in items(workload.pod(), "containers") {
            restricted(container, &mut complain);
            bounded(container, &mut complain);
            probed(&workload, container, &mut complain);
            mounted(&workload, container, &mut complain);
        }
        references(manifests, &workload, &mut complain);
    }
}

fn require(holds: bool, what: &str, complain: &mut impl FnMut(String)) {
    if !holds {
        complain(what.to_owned());
    }
}

fn pod(workload: &Workload<'_>, complain: &mut impl FnMut(String)) {
    let pod = workload.pod();
    let flag = |path: &str, wanted: bool| at(pod, path).and_then(Value::as_bool) == Some(wanted);
    require(flag("automountServiceAccountToken", false), "`automountServiceAccountToken` must be false", complain);
    require(flag("enableServiceLinks", false), "`enableServiceLinks` must be false", complain);
    require(flag("securityContext.runAsNonRoot", true), "`runAsNonRoot` must be true", complain);
    require(number(pod, "securityContext.runAsUser") == Some(10001), "`runAsUser` must be 10001, the image's user", complain);
    require(
        text(pod, "securityContext.seccompProfile.type") == Some("RuntimeDefault"),
        "`seccompProfile.type` must be RuntimeDefault",
        complain,
    );
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        require(at(pod, host).is_none(), &format!("`{host}` must not be set"), complain);
    }
    let allowed = ["configMap", "emptyDir", "persistentVolumeClaim", "secret", "projected", "csi", "downwardAPI", "ephemeral"];
    for volume in items(pod, "volumes") {
        require(allowed.iter().any(|kind| volume.get(kind).is_some()), "a volume is of a kind the restricted profile forbids", complain);
    }
    require(items(pod, "initContainers").next().is_none(), "init containers are not checked here: extend this test", complain);
}

fn restricted(container: &Value, complain: &mut impl FnMut(String)) {
    let context = |path: &str| at(container, &format!("securityContext.{path}"));
    require(
        context("allowPrivilegeEscalation").and_then(Value::as_bool) == Some(false),
        "`allowPrivilegeEscalation` must be false",
        complain,
    );
    require(context("readOnlyRootFilesystem").and_then(Value::as_bool) == Some(true), "`readOnlyRootFilesystem` must be true", complain);
    require(context("privileged").is_none(), "`privileged` must not be set", complain);
    let drops: Vec<&str> = items(container, "securityContext.capabilities.drop").filter_map(Value::as_str).collect();
    require(drops == ["ALL"], "all capabilities must be dropped", complain);
    require(context("capabilities.add").is_none(), "no capability may be added", complain);
    let image = text(container, "image").unwrap_or_default();
    let tag = image.rsplit('/').next().unwrap_or_default().split_once(':').map(|(_, tag)| tag);
    // the base's own image gets its tag from kustomize
    require(image == "autoact" || tag.is_some_and(|tag| tag != "latest"), &format!("the image `{image}` is not pinned"), complain);
}

fn bounded(container: &Value, complain: &mut impl FnMut(String)) {
    for bound in ["requests", "limits"] {
        for resource in ["cpu", "memory"] {
            let path = format!("resources.{bound}.{resource}");
            require(at(container, &path).is_some(), &format!("`{path}` is missing"), complain);
        }
    }
}

fn probed(workload: &Workload<'_>, container: &Value, complain: &mut impl FnMut(String)) {
    let ports = workload.ports();
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        let named = text(container, &format!("{probe}.httpGet.port")).map(|name| ports.iter().any(|(port, _)| port == name));
        let grpc = number(container, &format!("{probe}.grpc.port")).map(|number| ports.contains(&("grpc".to_owned(), number)));
        match named.or(grpc) {
            Some(true) => {}
            Some(false) => complain(format!("`{probe}` asks a port that the container does not have")),
            None => complain(format!("`{probe}` is missing")),
        }
    }
}

fn mounted(workload: &Workload<'_>, container: &Value, complain: &mut impl FnMut(String)) {
    let volumes: Vec<&str> = items(workload.pod(), "volumes")
        .filter_map(|volume| text(volume, "name"))
        .chain(items(workload.object, "spec.volumeClaimTemplates").filter_map(|claim| text(claim, "metadata.name")))
        .collect();
    for mount in items(container, "volumeMounts") {
        let name = text(mount, "name").unwrap_or_default();
        require(volumes.contains(&name), &format!("it mounts `{name}`, which is no volume"), complain);
    }
    let writable_tmp = items(container, "volumeMounts").any(|mount| text(mount, "mountPath") == Some("/tmp"));
    require(writable_tmp, "nothing can be written to /tmp", complain);
}

fn references(manifests: &Manifests, workload: &Workload<'_>, complain: &mut impl FnMut(String)) {
    let maps = items(workload.pod(), "containers")
        .flat_map(|container| items(container, "envFrom"))
        .filter_map(|source| text(source, "configMapRef.name"))
        .chain(items(workload.pod(), "volumes").filter_map(|volume| text(volume, "configMap.name")));
    for name in maps {
        require(manifests.named("ConfigMap", name).is_some(), &format!("there is no ConfigMap `{name}`"), complain);
    }
    for name in items(workload.pod(), "volumes").filter_map(|volume| text(volume, "persistentVolumeClaim.claimName")) {
        require(manifests.named("PersistentVolumeClaim", name).is_some(), &format!("there is no PersistentVolumeClaim `{name}`"), complain);
    }
    if let Some(service) = text(workload.object, "spec.serviceName") {
        require(manifests.named("Service", service).is_some(), &format!("there is no Service `{service}`"), complain);
    }
}
