//! What a hostile program does. Each attack tells whether it got through.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// More than any limit of the tests allows.
const FAR_TOO_MANY: usize = 1_000;
const MEBIBYTE: usize = 1 << 20;

/// Runs the attack `name`; `None` when there is none of that name.
pub(crate) fn run(name: &str, args: &[String]) -> Option<io::Result<bool>> {
    let first = || args.first().map_or("", String::as_str);
    Some(match name {
        "threads" => threads(),
        "zombies" => zombies(),
        "memory" => Ok(memory(4096)),
        "memory_of_children" => memory_of_children(),
        "hold_memory" => hold_memory(),
        "many_files" => many_files(),
        "many_small_files" => many_small_files(),
        "nest" => nest(),
        "deleted_files" => deleted_files(),
        "pipes" => pipes(),
        "tcp" => TcpStream::connect(first()).map(|_| true),
        "listen" => std::net::TcpListener::bind("0.0.0.0:0").map(|_| true),
        "udp" => udp(first()),
        "unix" => UnixStream::connect(first()).map(|_| true),
        "abstract" => SocketAddr::from_abstract_name(first()).and_then(|address| UnixStream::connect_addr(&address)).map(|_| true),
        "output" => output(),
        "ignore_input" => Ok(false),
        "tiers" => Ok(tiers()),
        _ => return None,
    })
}

fn threads() -> io::Result<bool> {
    let mut started = Vec::new();
    for _ in 0..FAR_TOO_MANY {
        let waits = || std::thread::park_timeout(Duration::from_secs(5));
        started.push(std::thread::Builder::new().stack_size(64 << 10).spawn(waits)?);
    }
    Ok(started.len() == FAR_TOO_MANY)
}

/// Children that ended and that nobody waits for.
fn zombies() -> io::Result<bool> {
    let children = (0..FAR_TOO_MANY).map(|_| Command::new("true").spawn()).collect::<io::Result<Vec<Child>>>()?;
    Ok(children.len() == FAR_TOO_MANY)
}

/// Takes memory and writes to each page; true when all of it was there.
fn memory(mebibytes: usize) -> bool {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    for _ in 0..mebibytes {
        let mut block = Vec::new();
        if block.try_reserve_exact(MEBIBYTE).is_err() {
            return false;
        }
        block.resize(MEBIBYTE, 1_u8);
        taken.push(block);
    }
    taken.iter().all(|block| block.len() == MEBIBYTE)
}

/// Eight processes with half of what one may have.
fn memory_of_children() -> io::Result<bool> {
    let own = std::env::current_exe()?;
    let children = (0..8)
        .map(|_| Command::new(&own).arg("hold_memory").stdin(Stdio::null()).stdout(Stdio::piped()).spawn())
        .collect::<io::Result<Vec<Child>>>()?;
    let mut ready = 0;
    for mut child in children {
        let mut line = [0_u8; 4];
        ready += usize::from(child.stdout.as_mut().is_some_and(|stdout| stdout.read_exact(&mut line).is_ok()));
    }
    std::thread::park_timeout(Duration::from_secs(1));
    Ok(ready == 8)
}

fn hold_memory() -> io::Result<bool> {
    let held = vec![1_u8; 64 * MEBIBYTE];
    io::stdout().write_all(b"held")?;
    io::stdout().flush()?;
    std::thread::park_timeout(Duration::from_secs(20));
    Ok(held.is_empty())
}

/// Files that take no bytes.
fn many_files() -> io::Result<bool> {
    for number in 0..50_000 {
        File::create(format!("empty-{number}"))?;
    }
    Ok(true)
}

/// Files that are below the bound, and together above it.
fn many_small_files() -> io::Result<bool> {
    let block = vec![1_u8; MEBIBYTE];
    for number in 0..100 {
        fs::write(format!("part-{number}"), &block)?;
        // the sandbox without namespaces looks from time to time
        std::thread::park_timeout(Duration::from_millis(10));
    }
    Ok(true)
}

/// Directories within directories, deeper than a path is long.
fn nest() -> io::Result<bool> {
    for _ in 0..20_000 {
        fs::create_dir("d")?;
        std::env::set_current_dir("d")?;
    }
    Ok(true)
}

/// Files that have no name any more, each of the greatest length.
fn deleted_files() -> io::Result<bool> {
    let block = vec![1_u8; 8 * MEBIBYTE];
    let mut open = Vec::new();
    for number in 0..40 {
        let name = format!("deleted-{number}");
        let mut file = File::create(&name)?;
        fs::remove_file(&name)?;
        file.write_all(&block)?;
        open.push(file);
    }
    Ok(open.len() == 40)
}

/// Pipes, until there are no descriptors.
fn pipes() -> io::Result<bool> {
    let pipes = (0..FAR_TOO_MANY).map(|_| io::pipe()).collect::<io::Result<Vec<_>>>()?;
    Ok(pipes.len() == FAR_TOO_MANY)
}

fn udp(address: &str) -> io::Result<bool> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    Ok(socket.send_to(b"ESCAPED", address)? > 0)
}

/// What is available here: namespaces within namespaces would be a way out of the filter.
fn tiers() -> bool {
    let tiers = autoact_sandbox::Tier::probe();
    println!("{tiers:?}");
    tiers.is_ok_and(|tiers| tiers.namespaces.is_ok())
}

/// Ten gigabytes of output.
fn output() -> io::Result<bool> {
    let (mut stdout, block, start) = (io::stdout(), vec![b'x'; MEBIBYTE], Instant::now());
    for _ in 0..10_240 {
        stdout.write_all(&block)?;
    }
    Ok(start.elapsed() > Duration::ZERO)
}
