//! What tools returned for people: a line for each, and the bytes of one.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use autoact_wire::v1::{self, get_artifact_response::Part};
use serde_json::Value;

use crate::client::Gateway;
use crate::json;
use crate::out;
use crate::text::plain_line;

/// An artifact on one line: name, kind, size, and what the model reads of it.
pub(crate) fn shown(artifact: &v1::Artifact) -> String {
    let v1::Artifact { name, kind, bytes, text, .. } = artifact;
    format!("{} ({}, {}): {}", plain_line(name), plain_line(kind), size(*bytes), plain_line(text))
}

/// The artifacts of a task, each with its step.
pub(crate) fn list(task: &v1::Task, json: bool) -> anyhow::Result<()> {
    let steps = task.turns.iter().filter_map(|turn| match &turn.turn {
        Some(v1::turn::Turn::Step(step)) => Some(step),
        _ => None,
    });
    let all = (1..).zip(steps).flat_map(|(number, step)| step.artifacts.iter().map(move |artifact| (number, artifact)));
    if json {
        return Ok(out::line(Value::Array(all.map(|(step, artifact)| json::artifact(artifact, Some(step))).collect()))?);
    }
    let mut none = true;
    for (step, artifact) in all {
        none = false;
        out::line(format_args!("step {step:<4} {}", shown(artifact)))?;
    }
    if none {
        out::note("the task's tools returned no artifacts");
    }
    Ok(())
}

/// Writes the bytes of an artifact to a file, or to standard output for `-`.
pub(crate) async fn fetch(client: &mut Gateway, request: v1::GetArtifactRequest, output: Option<PathBuf>) -> anyhow::Result<()> {
    let mut parts = client.get_artifact(request).await?.into_inner();
    let mut data = Vec::new();
    let mut artifact = v1::Artifact::default();
    while let Some(response) = parts.message().await? {
        match response.part {
            Some(Part::Artifact(first)) => artifact = first,
            Some(Part::Data(piece)) => data.extend(piece),
            None => {}
        }
    }
    anyhow::ensure!(data.len() as u64 == artifact.bytes, "{} of {} bytes came; try again", data.len(), artifact.bytes);
    match output {
        Some(path) if path == Path::new("-") => Ok(out::bytes(&data)?),
        Some(path) => write(&mut File::create(&path).with_context(|| format!("cannot write `{}`", path.display()))?, &path, &data),
        None => {
            // a name from elsewhere: one word, here, and no file that is there already
            let path = PathBuf::from(Path::new(&artifact.name).file_name().context("the artifact has no name; say `--output FILE`")?);
            let exists = || format!("cannot write `{}`; say `--output FILE` for another one", path.display());
            write(&mut File::create_new(&path).with_context(exists)?, &path, &data)
        }
    }
}

fn write(file: &mut File, path: &Path, data: &[u8]) -> anyhow::Result<()> {
    file.write_all(data).with_context(|| format!("cannot write `{}`", path.display()))?;
    out::note(format_args!("{} in `{}`", size(data.len() as u64), path.display()));
    Ok(())
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_is_one_line() {
        let artifact =
            v1::Artifact { name: "a.csv".into(), kind: "table".into(), bytes: 1536, text: "two\nlines".into(), ..Default::default() };
        assert_eq!(shown(&artifact), "a.csv (table, 1.5 KiB): two lines");
    }
}
