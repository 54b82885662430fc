//! The root that a program gets within a mount namespace of its own: a tmpfs with the system's
//! directories and the granted paths, all read-only, and one bounded tmpfs to write to.
//!
//! The host's root stays reachable as `/host` until everything is mounted, and then is gone.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, mount_remount, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use super::copy::{self, Bounds};
use super::error::{LaunchError, Step};
use crate::plan::Plan;

/// Where the root is built: any directory that exists everywhere.
const BASE: &str = "/tmp";
/// The host's root, and the new one, while it is built.
const HOST: &str = "/host";
const ROOT: &str = "/root";
/// The working directory lies here as well, wherever else it is shown.
const WORK: &str = "/tmp/.work";
/// What programs and libraries are in. Where one is a link (`/bin` to `usr/bin`), it stays one.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What programs read of `/etc`: nothing that is a secret, no names of users or hosts.
const ETC: [&str; 16] = [
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "pki/tls/certs",
    "ssl/certs",
    "timezone",
];
/// What finding another host needs.
const ETC_NETWORK: [&str; 5] = ["gai.conf", "hosts", "protocols", "resolv.conf", "services"];
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
const DEVICE_LINKS: [(&str, &str); 5] =
    [("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2"), ("shm", "/tmp")];
/// Directories and files to mount on: 1 MiB holds thousands.
const ROOT_OPTIONS: &str = "size=1m,mode=0755";

/// Builds the root and enters it. The user and the group get names there.
pub(crate) fn enter(plan: &Plan, user: u32, group: u32) -> Result<(), LaunchError> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).step("keep mounts private")?;
    tmpfs(BASE, ROOT_OPTIONS)?;
    chdir(BASE).step("enter the base of the root")?;
    directory(Path::new("host")).and_then(|()| directory(Path::new("root"))).step("make the base of the root")?;
    pivot_root(".", "host").step("leave the host's root")?;
    chdir("/").step("enter the base of the root")?;
    tmpfs(ROOT, ROOT_OPTIONS)?;
    system(plan)?;
    files(plan, user, group)?;
    writable(plan)?;
    for path in &plan.read {
        bind(path)?;
    }
    work(plan)?;
    processes()?;
    read_only(&plan.work)?;
    leave_host()
}

/// The system's directories and devices.
fn system(plan: &Plan) -> Result<(), LaunchError> {
    for path in SYSTEM.map(Path::new) {
        match fs::read_link(under(HOST, path)) {
            // relative, so that it leads nowhere but into the new root
            Ok(target) => {
                let target = target.strip_prefix("/").unwrap_or(&target);
                symlink(target, under(ROOT, path)).step(format!("link `{}`", path.display()))?;
            }
            Err(_) if under(HOST, path).is_dir() => bind(path)?,
            Err(_) => {}
        }
    }
    let network = if plan.network { &ETC_NETWORK[..] } else { &[] };
    for name in ETC.iter().chain(network) {
        // a link such as `resolv.conf` or `localtime` is followed on the host, whose links are absolute
        let path = Path::new("/etc").join(name);
        if let Some(source) = followed(&path) {
            bind_as(&source, &path)?;
        }
    }
    directory(&under(ROOT, Path::new("/dev"))).step("make `/dev`")?;
    for name in DEVICES {
        bind(&Path::new("/dev").join(name))?;
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, under(ROOT, &Path::new("/dev").join(name))).step(format!("link `/dev/{name}`"))?;
    }
    Ok(())
}

/// The names that programs ask for: those of the host are nobody's business.
fn files(plan: &Plan, user: u32, group: u32) -> Result<(), LaunchError> {
    let home = plan.work.display();
    let write = |name: &str, text: String| {
        let path = under(ROOT, &Path::new("/etc").join(name));
        directory(&under(ROOT, Path::new("/etc"))).and_then(|()| fs::write(path, text)).step(format!("write `/etc/{name}`"))
    };
    write("passwd", format!("root:x:0:0::/:/usr/sbin/nologin\nsandbox:x:{user}:{group}::{home}:/bin/sh\n"))?;
    write("group", format!("root:x:0:\nsandbox:x:{group}:\n"))?;
    if plan.network { Ok(()) } else { write("hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned()) }
}

/// `/tmp`, which is also where the working directory is: together they are bounded.
fn writable(plan: &Plan) -> Result<(), LaunchError> {
    let target = under(ROOT, Path::new("/tmp"));
    directory(&target).step("make `/tmp`")?;
    let options = format!("size={},nr_inodes={},mode=0755", plan.limits.work_bytes, plan.limits.work_files());
    tmpfs(&target, &options)
}

/// The working directory with what the caller put there, under its own path.
fn work(plan: &Plan) -> Result<(), LaunchError> {
    let source = under(ROOT, Path::new(WORK));
    DirBuilder::new().mode(0o700).create(&source).step("make the working directory")?;
    let open = |path: &Path| File::open(path).step("open the working directory");
    let bounds = Bounds::of(&plan.limits);
    copy::tree(open(&under(HOST, &plan.work))?, open(&source)?, bounds).step("copy what is in the working directory")?;
    let target = under(ROOT, &plan.work);
    directory(&target).step("make the working directory")?;
    mount_bind_recursive(&source, &target).step("mount the working directory")
}

/// The processes of the namespace. A container that hides parts of its `/proc` may not mount
/// another one; then there is none.
fn processes() -> Result<(), LaunchError> {
    let target = under(ROOT, Path::new("/proc"));
    directory(&target).step("make `/proc`")?;
    match mount("proc", &target, "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None) {
        Ok(()) | Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error).step("mount `/proc`"),
    }
}

/// Makes every mount read-only but those of `/tmp` and the working directory. Flags that the host
/// set stay, because the kernel refuses to lose them.
fn read_only(work: &Path) -> Result<(), LaunchError> {
    let mounts = fs::read_to_string(Path::new(HOST).join("proc/self/mountinfo")).step("read the list of mounts")?;
    let (writable, work) = (under(ROOT, Path::new("/tmp")), under(ROOT, work));
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let number = fields.next();
        let (Some(path), Some(options)) = (fields.nth(3), fields.next()) else { continue };
        let path = unescaped(path);
        if !path.starts_with(ROOT) {
            continue;
        }
        let mut flags = MountFlags::BIND | MountFlags::NOSUID;
        for option in options.split(',') {
            flags |= match option {
                "nodev" => MountFlags::NODEV,
                "noexec" => MountFlags::NOEXEC,
                "noatime" => MountFlags::NOATIME,
                "nodiratime" => MountFlags::NODIRATIME,
                "relatime" => MountFlags::RELATIME,
                _ => MountFlags::empty(),
            };
        }
        if !path.starts_with(under(ROOT, Path::new("/dev"))) {
            flags |= MountFlags::NODEV;
        }
        if path != writable && path != work {
            flags |= MountFlags::RDONLY;
        }
        match mount_remount(&path, flags, "") {
            // one that another mount covers: nobody reaches it
            Err(_) if !is_mount(&path, number) => {}
            result => result.step(format!("make `{}` read-only", path.display()))?,
        }
    }
    Ok(())
}

/// Whether `path` leads to the mount of that number.
fn is_mount(path: &Path, number: Option<&str>) -> bool {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID);
    match found {
        Ok(found) => number.and_then(|number| number.parse().ok()) == Some(found.stx_mnt_id),
        Err(error) => !matches!(error, rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS | rustix::io::Errno::NOTDIR),
    }
}

/// Leaves the base and the host's root for the new one.
fn leave_host() -> Result<(), LaunchError> {
    let step = "enter the new root";
    unmount(HOST, UnmountFlags::DETACH).step("unmount the host's root")?;
    let base =
        rustix::fs::openat(CWD, "/", rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC, rustix::fs::Mode::empty()).step(step)?;
    chdir(ROOT).step(step)?;
    pivot_root(".", ".").step(step)?;
    fchdir(&base).step(step)?;
    unmount(".", UnmountFlags::DETACH).step("unmount the base of the root")?;
    chdir("/").step(step)
}

fn tmpfs(target: impl AsRef<Path>, options: &str) -> Result<(), LaunchError> {
    let data = std::ffi::CString::new(options).map_err(io::Error::from).step("mount a tmpfs")?;
    mount("tmpfs", target.as_ref(), "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, data.as_c_str()).step("mount a tmpfs")
}

/// Shows a path of the host under the same name. It is canonical, so no link leads out of the root.
fn bind(path: &Path) -> Result<(), LaunchError> {
    bind_as(path, path)
}

fn bind_as(source: &Path, target: &Path) -> Result<(), LaunchError> {
    let step = || format!("mount `{}`", target.display());
    let (source, target) = (under(HOST, source), under(ROOT, target));
    let kind = source.symlink_metadata().step(step())?;
    if target.symlink_metadata().is_err() {
        match (kind.is_dir(), target.parent()) {
            (true, _) => directory(&target),
            (false, Some(parent)) => directory(parent).and_then(|()| File::create(&target).map(drop)),
            (false, None) => Ok(()),
        }
        .step(step())?;
    }
    mount_bind_recursive(&source, &target).step(step())
}

/// What a path of the host leads to, of the host; `None` where there is nothing.
fn followed(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..16 {
        let found = under(HOST, &path);
        let Ok(target) = fs::read_link(&found) else { return found.exists().then_some(path) };
        path = normal(&path.parent()?.join(target));
    }
    None
}

/// Without `..` and `.`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(normal.pop()),
            std::path::Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

fn under(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

fn directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// A path as the list of mounts writes it: blanks, line breaks and backslashes as octal numbers.
fn unescaped(path: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = path.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let octal = (byte == b'\\').then(|| path.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok())).flatten();
        plain.push(octal.unwrap_or(byte));
        at += if octal.is_some() { 4 } else { 1 };
    }
    std::ffi::OsString::from_vec(plain).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_list_of_mounts_are_read() {
        assert_eq!(unescaped(r"/root/a\040b\134\012c"), Path::new("/root/a b\\\nc"));
        assert_eq!(unescaped(r"/root/a\04"), Path::new(r"/root/a\04"));
    }

    #[test]
    fn links_are_followed_without_leaving_the_host() {
        assert_eq!(normal(Path::new("/etc/../run/./resolve/x/../stub")), Path::new("/run/resolve/stub"));
        assert_eq!(normal(Path::new("/../../etc")), Path::new("/etc"));
    }
}
