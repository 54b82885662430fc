//! Pictures: opening one within a directory, and how large it is.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use crate::text::quoted;

/// The file of this name below `directory`. No link is followed, and nothing outside is reached: each
/// part of the name is opened from the directory that was opened before it.
pub(super) fn read(directory: &Path, name: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
    let parts: Option<Vec<&std::ffi::OsStr>> = Path::new(name)
        .components()
        .map(|part| match part {
            Component::Normal(part) => Some(part),
            _ => None,
        })
        .collect();
    let parts = parts.filter(|parts| !parts.is_empty() && !name.contains('\0') && !name.ends_with('/'));
    let parts = parts.ok_or_else(|| format!("`{}` is no picture's name; expected one such as `map.png`, without `..`", quoted(name)))?;
    let missing = |_| format!("there is no picture `{}`", quoted(name));
    let flags = OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_RDONLY;
    let mut at: OwnedFd = open(directory, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_RDONLY, Mode::empty()).map_err(missing)?;
    for (number, part) in parts.iter().enumerate() {
        let last = number + 1 == parts.len();
        at = openat(&at, *part, if last { flags } else { flags | OFlag::O_DIRECTORY }, Mode::empty()).map_err(missing)?;
    }
    let file = File::from(at);
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
    match length {
        None => return Err(format!("`{}` is not a file", quoted(name))),
        Some(length) if length > max_bytes => return Err(format!("`{}` has {length} bytes; at most {max_bytes} are read", quoted(name))),
        Some(_) => {}
    }
    let mut bytes = Vec::new();
    // the file may grow meanwhile
    file.take(max_bytes).read_to_end(&mut bytes).map_err(|error| format!("`{}` cannot be read: {error}", quoted(name)))?;
    Ok(bytes)
}

/// Width and height of a PNG, JPEG, GIF, BMP or WebP picture, as its header says them.
pub(super) fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let little = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let three = |at: usize| Some(short(at)? | u32::from(*bytes.get(at + 2)?) << 16);
    let found = match bytes {
        [0x89, b'P', b'N', b'G', ..] => (big(16)?, big(20)?),
        [b'G', b'I', b'F', b'8', ..] => (short(6)?, short(8)?),
        // a negative height says that the first row is the uppermost
        [b'B', b'M', ..] => (little(18)?, i32::from_ne_bytes(little(22)?.to_ne_bytes()).unsigned_abs()),
        [0xff, 0xd8, ..] => jpeg(bytes)?,
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => match bytes.get(12..16)? {
            b"VP8X" => (three(24)? + 1, three(27)? + 1),
            b"VP8 " => (short(26)? & 0x3fff, short(28)? & 0x3fff),
            b"VP8L" => ((little(21)? & 0x3fff) + 1, (little(21)? >> 14 & 0x3fff) + 1),
            _ => return None,
        },
        _ => return None,
    };
    (found.0 > 0 && found.1 > 0).then_some(found)
}

/// The size that the first frame header says.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let short = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            // bytes that fill up
            0xff => at += 1,
            // frames; the three left out are tables
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => return Some((short(at + 7)?.into(), short(at + 5)?.into())),
            // markers without a length
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => at += 2 + usize::from(short(at + 2)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_say_the_size() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x01\0\0\0\x02\0".to_vec();
        assert_eq!(size(&png), Some((256, 512)));
        png.truncate(20);
        assert_eq!(size(&png), None);
        assert_eq!(size(b"GIF89a\x0a\0\x14\0"), Some((10, 20)));
        assert_eq!(size(b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x0b\x08\0\x10\0\x20"), Some((32, 16)));
        assert_eq!(size(b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x0f\0\0\x1f\0\0"), Some((16, 32)));
        assert_eq!(size(b"<svg/>"), None);
    }

    #[test]
    fn nothing_outside_is_opened() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("pictures");
        std::fs::create_dir_all(directory.join("maps")).unwrap();
        std::fs::write(root.path().join("secret.png"), b"secret").unwrap();
        std::fs::write(directory.join("maps/a.png"), b"a map").unwrap();
        std::os::unix::fs::symlink("../secret.png", directory.join("link.png")).unwrap();
        std::os::unix::fs::symlink("..", directory.join("up")).unwrap();
        assert_eq!(read(&directory, "maps/a.png", 10).unwrap(), b"a map");
        let outside = root.path().join("secret.png");
        for name in [
            "../secret.png",
            "maps/../../secret.png",
            "link.png",
            "up/secret.png",
            outside.to_str().unwrap(),
            "",
            ".",
            "..",
            "/",
            "maps",
            "maps/",
            "./maps/a.png",
            "a\0b",
            "absent.png",
        ] {
            assert!(read(&directory, name, 10).is_err(), "{name}");
        }
        assert!(read(&directory, "maps/a.png", 4).is_err());
    }

    proptest! {
        #[test]
        fn no_picture_panics(start in 0_usize..6, rest in prop::collection::vec(any::<u8>(), 0..60)) {
            let starts: [&[u8]; 6] = [b"\x89PNG", b"GIF8", b"BM", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBPVP8 ", b""];
            let _ = size(&[starts[start], &rest].concat());
        }

        #[test]
        fn no_name_panics(name in ".{0,30}") {
            let _ = read(Path::new("/nonexistent"), &name, 10);
        }
    }
}
