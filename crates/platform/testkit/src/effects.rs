//! A tool that changes the world and notes that it did.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::files::Assets;

/// `Retrieve` as a program: it notes the call that it runs, takes a while, and shows the page.
const RETRIEVE: &str = r#"read -r title; echo "$IDEMPOTENCY_KEY" >> "$RAN"; sleep 0.1; page=$(grep -m 1 -F "{\"title\":\"$title\"," "$PAGES" | sed "s/.*\"text\":\"//; s/\"}$//; s/\\\\n/ /g"); echo "${page:-There is no page with this title.}""#;

/// The file in which [`library`] notes calls.
const RAN: &str = "ran";

/// The assets' tools, with a `Retrieve` that has a side effect: every run of it adds its call's
/// idempotency key to a file in `dir`, which [`runs`] reads. Returns the library's file.
pub fn library(assets: &Assets, dir: &Path) -> anyhow::Result<PathBuf> {
    let tools = std::fs::read_to_string(&assets.tools)?;
    let (ran, pages) = (dir.join(RAN).display().to_string(), assets.corpus.display().to_string());
    let run = format!(
        "run = {{ kind = \"command\", sandbox = false, program = \"sh\", args = [\"-c\", '''{RETRIEVE}'''], env = {{ RAN = {ran:?}, PAGES = {pages:?} }} }}"
    );
    let mut found = false;
    let entries = tools.split("[[tool]]").map(|entry| {
        if !entry.contains("name = \"Retrieve\"\n") {
            return entry.to_owned();
        }
        found = true;
        entry.replace("effect = \"read_only\"", "effect = \"side_effect\"").replace("run = { kind = \"retrieve\" }", &run)
    });
    let library = entries.collect::<Vec<_>>().join("[[tool]]");
    anyhow::ensure!(found && library.contains(&run), "`{}` has no `Retrieve` of the kind `retrieve`", assets.tools.display());
    let file = dir.join("tools.toml");
    std::fs::write(&file, library)?;
    Ok(file)
}

/// How often each call was run, by its idempotency key: `<tenant>/<task>/<step>`.
pub fn runs(dir: &Path) -> anyhow::Result<BTreeMap<String, usize>> {
    let file = dir.join(RAN);
    if !file.exists() {
        return Ok(BTreeMap::new());
    }
    let mut runs = BTreeMap::new();
    for line in std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?.lines() {
        *runs.entry(line.to_owned()).or_default() += 1;
    }
    Ok(runs)
}
