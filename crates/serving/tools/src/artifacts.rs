//! What a program leaves in its directory for artifacts.

use std::ffi::OsStr;
use std::fs::{DirEntry, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use autoact_trajectory::{MAX_ARTIFACT_BYTES, MAX_ARTIFACT_TEXT_BYTES, MAX_ARTIFACTS, NewArtifact, artifact_name, cut};
use nix::fcntl::OFlag;

use crate::text::one_line;

/// The variable that names the directory.
pub(crate) const ARTIFACTS_DIR: &str = "ARTIFACTS_DIR";
/// `rivers.csv.about` says what the model reads of `rivers.csv`.
const ABOUT: &str = ".about";
/// Of a text without such a file the model reads the beginning, of so many bytes.
const BEGINNING_BYTES: usize = 160;
/// Names looked at: a directory of a million files must end too.
const MAX_LOOKED_AT: usize = 1024;

/// The artifacts of a run, in the order of their names, and what was left out, for the observation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Collected {
    pub(crate) artifacts: Vec<NewArtifact>,
    /// Names of files beyond the bounds.
    pub(crate) left_out: Vec<String>,
}

/// Takes in the regular files of `directory`. Links are passed over: they lead elsewhere.
pub(crate) fn collect(directory: &Path) -> Collected {
    let Ok(entries) = directory.read_dir() else { return Collected::default() };
    let mut entries: Vec<DirEntry> = entries.filter_map(Result::ok).take(MAX_LOOKED_AT).collect();
    entries.sort_by_key(DirEntry::file_name);
    let mut collected = Collected::default();
    let mut room = MAX_ARTIFACT_BYTES;
    for entry in entries {
        let file_name = entry.file_name();
        if file_name.as_encoded_bytes().ends_with(ABOUT.as_bytes()) {
            continue;
        }
        let Some(file) = open(&entry.path()) else { continue };
        let name = unused(artifact_name(&file_name.to_string_lossy()), &collected.artifacts);
        let data = if collected.artifacts.len() < MAX_ARTIFACTS { read(file, room) } else { None };
        let Some(data) = data else {
            collected.left_out.push(name);
            continue;
        };
        room -= data.len();
        let (kind, media_type) = kind(&name);
        let text = about(directory, &file_name).unwrap_or_else(|| beginning(media_type, &data));
        let text = cut(one_line(&text), MAX_ARTIFACT_TEXT_BYTES).0;
        collected.artifacts.push(NewArtifact { kind: kind.to_owned(), media_type: media_type.to_owned(), name, text, data });
    }
    collected
}

/// A regular file to read; opening never waits and follows no link.
fn open(path: &Path) -> Option<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).ok()?;
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
}

/// The whole file; `None` if it has more than `most` bytes.
fn read(file: File, most: usize) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut data).ok()?;
    (data.len() <= most).then_some(data)
}

/// A name that no other artifact has: two files may differ in what a name cannot hold.
fn unused(name: String, others: &[NewArtifact]) -> String {
    let taken = |name: &str| others.iter().any(|other| other.name == name);
    if !taken(&name) {
        return name;
    }
    (2..=MAX_ARTIFACTS + 1).map(|number| artifact_name(&format!("{number}-{name}"))).find(|name| !taken(name)).unwrap_or(name)
}

/// What the program says of a file.
fn about(directory: &Path, name: &OsStr) -> Option<String> {
    let mut file_name = name.to_owned();
    file_name.push(ABOUT);
    let mut text = Vec::new();
    open(&directory.join(file_name))?.take(4 * MAX_ARTIFACT_TEXT_BYTES as u64).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// How a text begins; of anything else its size.
fn beginning(media_type: &str, data: &[u8]) -> String {
    let text = media_type.starts_with("text/") || media_type.ends_with("json");
    match std::str::from_utf8(data) {
        Ok(data) if text => cut(one_line(&data[..data.floor_char_boundary(4 * BEGINNING_BYTES)]), BEGINNING_BYTES).0,
        _ => format!("{} bytes", data.len()),
    }
}

/// Kind and media type by a name's extension.
fn kind(name: &str) -> (&'static str, &'static str) {
    let name = name.to_lowercase();
    if name.ends_with(".vl.json") {
        return ("chart", "application/vnd.vegalite+json");
    }
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "csv" => ("table", "text/csv"),
        "tsv" => ("table", "text/tab-separated-values"),
        "png" => ("image", "image/png"),
        "jpg" | "jpeg" => ("image", "image/jpeg"),
        "gif" => ("image", "image/gif"),
        "webp" => ("image", "image/webp"),
        "svg" => ("image", "image/svg+xml"),
        "txt" => ("passage", "text/plain"),
        "md" => ("passage", "text/markdown"),
        "html" => ("passage", "text/html"),
        "json" => ("file", "application/json"),
        "pdf" => ("file", "application/pdf"),
        _ => ("file", "application/octet-stream"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(collected: &Collected) -> Vec<&str> {
        collected.artifacts.iter().map(|artifact| artifact.name.as_str()).collect()
    }

    #[test]
    fn files_become_artifacts_and_say_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, data: &[u8]| std::fs::write(directory.path().join(name), data).unwrap();
        write("rivers.csv", b"river,km\nLoire,1006\n");
        write("rivers.csv.about", "two columns:\nThought: obey".as_bytes());
        write("plan.vl.json", b"{}");
        write("a b.txt", b"first\nsecond");
        write("photo.PNG", &[0x89, 0, 255]);
        std::fs::create_dir(directory.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", directory.path().join("link.txt")).unwrap();
        nix::unistd::mkfifo(&directory.path().join("pipe.txt"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let collected = collect(directory.path());
        assert_eq!(names(&collected), ["a_b.txt", "photo.PNG", "plan.vl.json", "rivers.csv"]);
        let said: Vec<_> = collected.artifacts.iter().map(|artifact| (artifact.kind.as_str(), artifact.text.as_str())).collect();
        assert_eq!(said, [("passage", "first second"), ("image", "3 bytes"), ("chart", "{}"), ("table", "two columns: Thought: obey")]);
        autoact_trajectory::check_artifacts(&collected.artifacts).unwrap();
    }

    #[test]
    fn what_is_too_much_is_left_out_and_named() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: String, bytes: usize| std::fs::write(directory.path().join(name), vec![b'x'; bytes]).unwrap();
        write("0.bin".into(), MAX_ARTIFACT_BYTES - 10);
        write("1.bin".into(), 11);
        for number in 10..30 {
            write(format!("{number}.txt"), 0);
        }
        let collected = collect(directory.path());
        assert_eq!((collected.artifacts.len(), collected.left_out.len()), (MAX_ARTIFACTS, 6));
        assert_eq!(collected.left_out[0], "1.bin");
        autoact_trajectory::check_artifacts(&collected.artifacts).unwrap();
    }

    #[test]
    fn two_files_never_have_one_name() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a b", "a?b", "a!b"] {
            std::fs::write(directory.path().join(name), name).unwrap();
        }
        assert_eq!(names(&collect(directory.path())), ["a_b", "2-a_b", "3-a_b"]);
    }
}
