//! The manifests: read from the base by ourselves, or rendered by kustomize.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use autoact_testkit::files::root;
use serde::Deserialize as _;
use serde_norway::{Mapping, Value};

use crate::yaml::{at, items, text, texts};

/// A set of Kubernetes objects.
pub(crate) struct Manifests {
    pub(crate) name: String,
    pub(crate) objects: Vec<Value>,
}

/// A Deployment or a StatefulSet.
#[derive(Clone, Copy)]
pub(crate) struct Workload<'a> {
    pub(crate) object: &'a Value,
    pub(crate) name: &'a str,
}

impl<'a> Workload<'a> {
    pub(crate) fn template(&self) -> &'a Value {
        at(self.object, "spec.template").unwrap_or(&Value::Null)
    }

    pub(crate) fn pod(&self) -> &'a Value {
        at(self.template(), "spec").unwrap_or(&Value::Null)
    }

    pub(crate) fn labels(&self) -> Vec<(String, String)> {
        texts(self.template(), "metadata.labels")
    }

    /// (container, port name, port number)
    pub(crate) fn ports(&self) -> Vec<(String, u64)> {
        let containers = items(self.pod(), "containers");
        let ports = containers.flat_map(|container| items(container, "ports"));
        ports.filter_map(|port| Some((text(port, "name")?.to_owned(), crate::yaml::number(port, "containerPort")?))).collect()
    }
}

impl Manifests {
    /// The base without kustomize: its resources, and the maps its generators make.
    pub(crate) fn of_base() -> anyhow::Result<Manifests> {
        let dir = root().join("k8s/base");
        let kustomization = one(&dir.join("kustomization.yaml"))?;
        let mut objects = Vec::new();
        for resource in items(&kustomization, "resources") {
            objects.extend(documents(&dir.join(resource.as_str().context("a resource is a path")?))?);
        }
        for generator in items(&kustomization, "configMapGenerator") {
            objects.push(config_map(&dir, generator)?);
        }
        Ok(Manifests { name: "k8s/base, read by this test".to_owned(), objects })
    }

    /// What kustomize makes of a directory of `k8s/`.
    pub(crate) fn rendered(kustomize: &[String], directory: &str) -> anyhow::Result<Manifests> {
        let [program, args @ ..] = kustomize else { anyhow::bail!("no command") };
        let dir = root().join("k8s").join(directory);
        let output = Command::new(program).args(args).arg(&dir).output().with_context(|| format!("cannot run `{program}`"))?;
        anyhow::ensure!(output.status.success(), "kustomize refuses k8s/{directory}:\n{}", String::from_utf8_lossy(&output.stderr));
        let objects = parse(&String::from_utf8(output.stdout)?).with_context(|| format!("what kustomize makes of k8s/{directory}"))?;
        Ok(Manifests { name: format!("k8s/{directory}, made by `{program}`"), objects })
    }

    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| text(object, "kind") == Some(kind))
    }

    pub(crate) fn named<'a>(&'a self, kind: &'a str, name: &str) -> Option<&'a Value> {
        self.of_kind(kind).find(|object| text(object, "metadata.name") == Some(name))
    }

    pub(crate) fn workloads(&self) -> Vec<Workload<'_>> {
        let objects = self.of_kind("Deployment").chain(self.of_kind("StatefulSet"));
        objects.filter_map(|object| Some(Workload { object, name: text(object, "metadata.name")? })).collect()
    }
}

/// An overlay of ours with components added, as somebody who uses them writes it.
pub(crate) fn with_components(overlay: &str, components: &[&str]) -> anyhow::Result<tempfile::TempDir> {
    let added = |k8s: &str| components.iter().map(|component| format!("  - {k8s}/components/{component}\n")).collect::<String>();
    on_top(overlay, |k8s| format!("components:\n{}", added(k8s)))
}

/// An overlay of ours with settings (`NAME=value`) that replace its own, likewise.
pub(crate) fn with_settings(overlay: &str, settings: &[&str]) -> anyhow::Result<tempfile::TempDir> {
    let settings: String = settings.iter().map(|setting| format!("      - {setting}\n")).collect();
    on_top(overlay, |_| format!("configMapGenerator:\n  - name: autoact-config\n    behavior: merge\n    literals:\n{settings}"))
}

/// A kustomization over an overlay, with what `rest` makes of the path to `k8s/`.
fn on_top(overlay: &str, rest: impl FnOnce(&str) -> String) -> anyhow::Result<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    let here = std::fs::canonicalize(dir.path())?;
    // kustomize wants a relative path
    let up = "../".repeat(here.components().count() - 1);
    let k8s = root().join("k8s");
    let k8s = format!("{up}{}", k8s.strip_prefix("/")?.display());
    let rest = rest(&k8s);
    let text =
        format!("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - {k8s}/overlays/{overlay}\n{rest}");
    std::fs::write(dir.path().join("kustomization.yaml"), text)?;
    Ok(dir)
}

/// The command that renders: `$AUTOACT_KUSTOMIZE`, what `scripts/fetch-kustomize` got, or one on
/// `PATH`.
pub(crate) fn kustomize() -> Option<Vec<String>> {
    if let Ok(named) = std::env::var("AUTOACT_KUSTOMIZE")
        && !named.trim().is_empty()
    {
        return Some(named.split_whitespace().map(str::to_owned).collect());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = |name: &str| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    let fetched = Some(root().join(".quickstart/bin/kustomize")).filter(|file| file.is_file());
    let command = |program: PathBuf, verb: &str| vec![program.display().to_string(), verb.to_owned()];
    let kustomize = fetched.or_else(|| on_path("kustomize")).map(|program| command(program, "build"));
    kustomize.or_else(|| on_path("kubectl").map(|program| command(program, "kustomize")))
}

/// A file nobody refers to is a mistake, and so is a reference to no file.
pub(crate) fn every_file_is_used() -> anyhow::Result<()> {
    let root = root().join("k8s");
    let mut files = BTreeSet::new();
    walk(&root, &mut files)?;
    let mut used = BTreeSet::new();
    for kustomization in files.iter().filter(|file| file.ends_with("kustomization.yaml")) {
        let dir = kustomization.parent().context("a file is in a directory")?;
        let value = one(kustomization)?;
        used.insert(kustomization.clone());
        let named = ["resources", "components"].into_iter().flat_map(|key| items(&value, key)).filter_map(Value::as_str);
        let patches = items(&value, "patches").filter_map(|patch| text(patch, "path"));
        let generated =
            items(&value, "configMapGenerator").flat_map(|map| items(map, "envs").chain(items(map, "files"))).filter_map(Value::as_str);
        for name in named.chain(patches).chain(generated) {
            let path = dir.join(name);
            anyhow::ensure!(path.exists(), "`{}` names `{name}`, which is not there", kustomization.display());
            used.insert(std::fs::canonicalize(path)?);
        }
    }
    for file in &files {
        anyhow::ensure!(used.contains(file), "`{}` is used by no kustomization", file.display());
        if file.extension().is_some_and(|extension| extension == "yaml") {
            documents(file)?;
        }
    }
    Ok(())
}

fn walk(dir: &Path, files: &mut BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.insert(std::fs::canonicalize(path)?);
        }
    }
    Ok(())
}

fn config_map(dir: &Path, generator: &Value) -> anyhow::Result<Value> {
    let mut data = Mapping::new();
    for file in items(generator, "envs").filter_map(Value::as_str) {
        let content = std::fs::read_to_string(dir.join(file))?;
        for line in content.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, value) = line.split_once('=').with_context(|| format!("{file}: not NAME=value: `{line}`"))?;
            anyhow::ensure!(data.insert(name.into(), value.into()).is_none(), "{file}: `{name}` is set twice");
        }
    }
    for file in items(generator, "files").filter_map(Value::as_str) {
        data.insert(file.into(), std::fs::read_to_string(dir.join(file))?.into());
    }
    let name = text(generator, "name").context("a generated map has a name")?;
    let mut metadata = Mapping::new();
    metadata.insert("name".into(), name.into());
    let mut object = Mapping::new();
    object.insert("apiVersion".into(), "v1".into());
    object.insert("kind".into(), "ConfigMap".into());
    object.insert("metadata".into(), metadata.into());
    object.insert("data".into(), data.into());
    Ok(object.into())
}

fn one(path: &Path) -> anyhow::Result<Value> {
    documents(path)?.pop().with_context(|| format!("`{}` is empty", path.display()))
}

fn documents(path: &Path) -> anyhow::Result<Vec<Value>> {
    let content = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    parse(&content).with_context(|| format!("`{}` is not YAML", path.display()))
}

fn parse(content: &str) -> anyhow::Result<Vec<Value>> {
    let documents = serde_norway::Deserializer::from_str(content).map(Value::deserialize);
    let mut values = documents.collect::<Result<Vec<_>, _>>()?;
    for value in &mut values {
        value.apply_merge()?;
    }
    values.retain(|value| !value.is_null());
    Ok(values)
}
