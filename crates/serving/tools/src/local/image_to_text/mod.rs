//! `image_to_text`: what a picture shows, by a caption that was recorded, and the text in it, by
//! tesseract. There is no model of pictures in it.

mod captions;
mod picture;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use autoact_sandbox::{Sandbox, Tier};
use autoact_trajectory::{Digest, Effect, ToolSpec};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use self::captions::Captions;
use crate::command::{Command, told_status};
use crate::local::settings::{from, keys, program};
use crate::names::similar;
use crate::placeholder::Argument;
use crate::preset::{Key, Preset};
use crate::text::{fold, one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "image_to_text",
    name: "Image2Text",
    definition: "Says what a picture shows and which text stands in it.",
    schema: Some(
        r#"{"type":"object","properties":{"picture":{"type":"string","minLength":1,"maxLength":300,"description":"the picture's name"}},"required":["picture"],"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &["map.png"],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(30),
    max_observation_bytes: 2048,
    multiline: true,
    keys: &[
        Key { name: "captions", meaning: "a file of recorded captions: JSON lines or, as `.tsv`, tabs", required: false },
        Key { name: "pictures", meaning: "the directory of the pictures, from the library's directory; needed for `ocr`", required: false },
        Key { name: "ocr", meaning: "whether tesseract reads the text in pictures", required: false },
        Key { name: "language", meaning: "tesseract's language, `eng` without it", required: false },
        Key { name: "max_bytes", meaning: "the longest file of a picture, 8 MiB without it", required: false },
        Key { name: "max_pixels", meaning: "the largest picture, 40,000,000 pixels without it", required: false },
        Key { name: "tier", meaning: "`namespaces` (without it) or `landlock`, as for a `sandbox`", required: false },
        Key { name: "allow_lesser", meaning: "whether `landlock` will do where there are no namespaces", required: false },
    ],
    data: &["captions"],
};

/// What reads text in pictures.
const TESSERACT: &str = "tesseract";
/// The picture's name in the sandbox.
const PICTURE: &str = "picture";
const MAX_BYTES: u64 = 8 << 20;
/// A page at 600 dots per inch has 35 million.
const MAX_PIXELS: u64 = 40_000_000;
/// Names of a directory that are looked at for one that is like a wrong one.
const MAX_LOOKED_AT: usize = 10_000;

#[derive(Deserialize)]
struct Keys {
    captions: Option<PathBuf>,
    pictures: Option<PathBuf>,
    #[serde(default)]
    ocr: bool,
    language: Option<String>,
    max_bytes: Option<u64>,
    max_pixels: Option<u64>,
    tier: Option<Tier>,
    #[serde(default)]
    allow_lesser: bool,
}

pub(super) fn make(run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    let Keys { captions, pictures, ocr, language, max_bytes, max_pixels, tier, allow_lesser } = keys(run)?;
    let mut mistakes = Vec::new();
    if captions.is_none() && !ocr {
        mistakes.push("expected `captions` (a file of recorded captions), `ocr = true`, or both".to_owned());
    }
    let captions = captions.map_or_else(|| Ok(Captions::default()), |path| Captions::read(&from(base, &path)));
    let captions = captions.map_err(|wrong| mistakes.extend(wrong)).unwrap_or_default();
    let pictures = pictures.map(|path| from(base, &path));
    match &pictures {
        Some(path) if !path.is_dir() => mistakes.push(format!("`pictures` names `{}`, which is no directory", path.display())),
        None if ocr => mistakes.push("`ocr` needs `pictures`, the directory of the pictures".to_owned()),
        _ => {}
    }
    let language = language.unwrap_or_else(|| "eng".to_owned());
    if language.is_empty() || !language.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+')) {
        mistakes.push(format!("the language `{}` is none; expected one such as `eng` or `deu+eng`", quoted(&language)));
    }
    let tesseract = match ocr.then(|| program(TESSERACT, base, "install it: Debian's package is `tesseract-ocr`")) {
        Some(Err(mistake)) => {
            mistakes.push(format!("`ocr`: {mistake}"));
            None
        }
        Some(Ok(program)) => {
            let sandbox = Sandbox { tier: tier.unwrap_or(Tier::Namespaces), allow_lesser, ..Sandbox::default() };
            let args = [PICTURE, "stdout", "-l", &language].map(|text| Argument::Fixed(text.to_owned())).to_vec();
            // one thread: the sandbox counts processor time of all
            let env = BTreeMap::from([("OMP_THREAD_LIMIT".to_owned(), "1".to_owned())]);
            Some(Command::new(spec.clone(), program, args, env, Some(sandbox)))
        }
        None => None,
    };
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let (max_bytes, max_pixels) = (max_bytes.unwrap_or(MAX_BYTES), max_pixels.unwrap_or(MAX_PIXELS));
    Ok(Arc::new(ImageToText { spec, captions, pictures, tesseract, max_bytes, max_pixels }))
}

struct ImageToText {
    spec: ToolSpec,
    captions: Captions,
    pictures: Option<PathBuf>,
    tesseract: Option<Command>,
    max_bytes: u64,
    max_pixels: u64,
}

impl Tool for ImageToText {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let name = call.params.trim();
        let bytes = self.picture(name).map_err(ToolError::Params)?;
        let digest = bytes.as_ref().map(|bytes| Digest(Sha256::digest(bytes).into()).to_string()).unwrap_or_default();
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        let caption = self.captions.find([name, stem, digest.as_str()]);
        let mut lines: Vec<String> = caption.map(|caption| format!("caption (recorded): {}", one_line(caption))).into_iter().collect();
        if let (Some(tesseract), Some(bytes)) = (&self.tesseract, &bytes) {
            let text = text(tesseract, call, bytes)?;
            lines.push(if text.is_empty() { "text (tesseract): none".to_owned() } else { format!("text (tesseract): {text}") });
        }
        match lines.is_empty() {
            false => Ok(lines.join("\n").into()),
            true => Err(ToolError::Params(format!("there is no caption of `{}`{}", quoted(name), self.near(name)))),
        }
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        self.tesseract.as_ref().and_then(|command| command.sandbox())
    }
}

impl ImageToText {
    /// The picture's file; `None` where captions go by names alone.
    fn picture(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(directory) = &self.pictures else { return Ok(None) };
        let bytes = picture::read(directory, name, self.max_bytes).map_err(|why| format!("{why}{}", self.near(name)))?;
        let (width, height) = picture::size(&bytes)
            .ok_or_else(|| format!("`{}` is no picture that is known; expected PNG, JPEG, GIF, BMP or WebP", quoted(name)))?;
        let pixels = u64::from(width) * u64::from(height);
        if pixels > self.max_pixels {
            return Err(format!("`{}` has {width} × {height} pixels; at most {} are read", quoted(name), self.max_pixels));
        }
        Ok(Some(bytes))
    }

    /// The names that are like one that is wrong.
    fn near(&self, name: &str) -> String {
        let files = self.pictures.as_ref().and_then(|directory| directory.read_dir().ok());
        let files = files.into_iter().flatten().take(MAX_LOOKED_AT).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = match &self.pictures {
            Some(_) => files.collect(),
            None => self.captions.pictures().take(MAX_LOOKED_AT).map(str::to_owned).collect(),
        };
        names.sort();
        let folded: Vec<String> = names.iter().map(|name| fold(name)).collect();
        let near = similar(name, folded.iter().map(String::as_str), 3);
        let near: Vec<String> = near.into_iter().map(|at| format!("`{}`", quoted(&names[at]))).collect();
        if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
    }
}

/// The text in a picture.
fn text(tesseract: &Command, call: &ToolCall<'_>, bytes: &[u8]) -> Result<String, ToolError> {
    let ended = tesseract.ended(call, &[(PICTURE, bytes)])?;
    if ended.status.success() {
        return Ok(ended.told.trim().replace('\u{c}', ""));
    }
    // it says on its last line what is wrong, such as a language that is not installed
    let message = ended.complaint.lines().map(one_line).rfind(|line| !line.is_empty()).unwrap_or_else(|| "no message".to_owned());
    Err(ToolError::Failed { status: format!("tesseract ended with {}", told_status(ended.status)), message: quoted(&message) })
}
