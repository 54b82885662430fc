//! The dense vectors of a collection's segments, in one file of fixed-size records.
//!
//! A search reads the whole file, part by part: a million vectors of 384 components are 400 MB
//! (docs/benchmarks.md has the times), and no graph has to be built or repaired when segments come
//! and go. Components are kept in 8 bits with a scale for each vector; a test bounds what that does
//! to a cosine.
//!
//! ```text
//! header   512 bytes: magic, dimension, the name of the vectors' space
//! record   number u64 | scale f32 | check u32 | dimension × i8, little-endian
//! ```

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MAGIC: &[u8; 8] = b"AAVEC01\n";
const HEADER: usize = 512;
/// Of a record without its components.
const FRAME: usize = 16;
/// What a search reads at once.
const CHUNK: usize = 1 << 20;
/// Records at the end that are checked when the file is opened: a batch that a crash cut short.
const CHECKED: u64 = 4096;

/// Vectors of one embedder: those of two embedders cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Space {
    /// The embedder's name.
    pub name: String,
    /// The length of its vectors.
    pub dimension: usize,
}

/// The vectors of one collection in one space.
#[derive(Debug)]
pub(crate) struct Vectors {
    path: PathBuf,
    space: Space,
    state: Mutex<State>,
}

#[derive(Debug, Clone)]
struct State {
    file: Arc<File>,
    /// Whole records.
    count: u64,
    /// The number after the last record's.
    next: u64,
}

impl Vectors {
    /// Opens the file in a directory, or makes it.
    pub(crate) fn open(directory: &Path, space: &Space) -> io::Result<Vectors> {
        fs::create_dir_all(directory)?;
        let path = directory.join(format!("{:016x}.vec", fnv(space.name.as_bytes().iter().copied())));
        let header = header(space);
        let is_ours = File::open(&path).and_then(|file| {
            let mut found = vec![0; HEADER];
            file.read_exact_at(&mut found, 0)?;
            Ok(found == header)
        });
        if !is_ours.unwrap_or(false) {
            fs::write(&path, &header)?;
        }
        let file = File::options().read(true).write(true).open(&path)?;
        let record = record_bytes(space.dimension) as u64;
        let count = (file.metadata()?.len() - HEADER as u64) / record;
        let mut state = State { file: Arc::new(file), count, next: 0 };
        state.count = whole(&state, space.dimension)?;
        state.file.set_len(HEADER as u64 + state.count * record)?;
        state.next = match state.count.checked_sub(1) {
            Some(last) => number(&read(&state, space.dimension, last, 1)?) + 1,
            None => 0,
        };
        Ok(Vectors { path, space: space.clone(), state: Mutex::new(state) })
    }

    /// The spaces whose vectors a directory has.
    pub(crate) fn spaces(directory: &Path) -> io::Result<Vec<Space>> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut spaces = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "vec") {
                let mut header = vec![0; HEADER];
                File::open(&path)?.read_exact_at(&mut header, 0)?;
                let name = &header[MAGIC.len() + 4..];
                let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                let dimension = u32::from_le_bytes(four(&header, MAGIC.len())) as usize;
                spaces.push(Space { name: String::from_utf8_lossy(&name[..end]).into_owned(), dimension });
            }
        }
        Ok(spaces)
    }

    /// How many there are, those of segments that are gone included.
    pub(crate) fn count(&self) -> u64 {
        self.state().count
    }

    /// Segments from this number on have none.
    pub(crate) fn next(&self) -> u64 {
        self.state().next
    }

    /// Adds vectors of numbers that ascend from [`next`](Self::next) on, and writes them to the disk.
    pub(crate) fn add(&self, vectors: &[(u64, Vec<f32>)]) -> io::Result<()> {
        let mut state = self.state();
        let mut bytes = Vec::with_capacity(vectors.len() * record_bytes(self.space.dimension));
        let mut next = state.next;
        for (number, vector) in vectors {
            if vector.len() != self.space.dimension || *number < next {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a vector of another length, or out of order"));
            }
            let (scale, components) = quantized(vector);
            push(&mut bytes, *number, scale, &components);
            next = number + 1;
        }
        let offset = HEADER as u64 + state.count * record_bytes(self.space.dimension) as u64;
        state.file.write_all_at(&bytes, offset)?;
        state.file.sync_data()?;
        state.count += vectors.len() as u64;
        state.next = next;
        Ok(())
    }

    /// The numbers whose vectors are nearest to a query, nearest first, with their cosines.
    pub(crate) fn nearest(&self, query: &[f32], limit: usize) -> io::Result<Vec<(u64, f32)>> {
        let state = self.state().clone();
        if query.len() != self.space.dimension || limit == 0 {
            return Ok(Vec::new());
        }
        let (scale, query) = quantized(query);
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let share = state.count.div_ceil(threads).max(1);
        let parts = (0..threads).map(|part| (part * share).min(state.count)..((part + 1) * share).min(state.count));
        let scanned: Vec<io::Result<Vec<Near>>> = std::thread::scope(|scope| {
            let part = |range: std::ops::Range<u64>| {
                let (state, query) = (&state, &query);
                scope.spawn(move || scan(state, query, range, limit))
            };
            let running: Vec<_> = parts.map(part).collect();
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a search broke off")))).collect()
        });
        let mut near = scanned.into_iter().collect::<io::Result<Vec<_>>>()?.concat();
        near.sort_by(|one, other| other.cmp(one));
        near.truncate(limit);
        Ok(near.into_iter().map(|near| (near.number, near.score * scale)).collect())
    }

    /// Removes the vectors of segments that are gone, from the disk too.
    pub(crate) fn retain(&self, is_there: impl Fn(u64) -> bool) -> io::Result<()> {
        let mut state = self.state();
        let draft = self.path.with_extension("tmp");
        let mut out = BufWriter::new(File::create(&draft)?);
        out.write_all(&header(&self.space))?;
        let bytes = record_bytes(self.space.dimension);
        let per_chunk = (CHUNK / bytes).max(1) as u64;
        let mut kept = 0;
        for first in (0..state.count).step_by(per_chunk as usize) {
            let chunk = read(&state, self.space.dimension, first, per_chunk.min(state.count - first))?;
            for record in chunk.chunks_exact(bytes).filter(|record| is_there(number(record))) {
                out.write_all(record)?;
                kept += 1;
            }
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&draft, &self.path)?;
        let file = File::options().read(true).write(true).open(&self.path)?;
        *state = State { file: Arc::new(file), count: kept, next: state.next };
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn header(space: &Space) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&(space.dimension as u32).to_le_bytes());
    header.extend(space.name.bytes().take(HEADER - header.len()));
    header.resize(HEADER, 0);
    header
}

fn record_bytes(dimension: usize) -> usize {
    FRAME + dimension
}

fn read(state: &State, dimension: usize, first: u64, count: u64) -> io::Result<Vec<u8>> {
    let bytes = record_bytes(dimension);
    let mut records = vec![0; bytes * count as usize];
    state.file.read_exact_at(&mut records, HEADER as u64 + first * bytes as u64)?;
    Ok(records)
}

/// How many records are whole: at most the last batch is not.
fn whole(state: &State, dimension: usize) -> io::Result<u64> {
    let first = state.count.saturating_sub(CHECKED);
    let records = read(state, dimension, first, state.count - first)?;
    let whole = records.chunks_exact(record_bytes(dimension)).take_while(|record| check(record) == stored_check(record));
    Ok(first + whole.count() as u64)
}

fn push(bytes: &mut Vec<u8>, number: u64, scale: f32, components: &[i8]) {
    let begin = bytes.len();
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&scale.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend(components.iter().map(|component| component.cast_unsigned()));
    let check = check(&bytes[begin..]);
    bytes[begin + 12..begin + FRAME].copy_from_slice(&check.to_le_bytes());
}

fn four(record: &[u8], at: usize) -> [u8; 4] {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&record[at..at + 4]);
    bytes
}

fn number(record: &[u8]) -> u64 {
    u64::from(u32::from_le_bytes(four(record, 0))) | u64::from(u32::from_le_bytes(four(record, 4))) << 32
}

fn stored_check(record: &[u8]) -> u32 {
    u32::from_le_bytes(four(record, 12))
}

fn check(record: &[u8]) -> u32 {
    let hash = fnv(record[..12].iter().chain(&record[FRAME..]).copied());
    (hash ^ hash >> 32) as u32
}

/// FNV-1a, 64 bits.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Components in 8 bits, and what one of them is worth.
fn quantized(vector: &[f32]) -> (f32, Vec<i8>) {
    let most = vector.iter().fold(0.0_f32, |most, component| most.max(component.abs()));
    if most == 0.0 || !most.is_finite() {
        return (0.0, vec![0; vector.len()]);
    }
    let scale = most / 127.0;
    (scale, vector.iter().map(|component| (component / scale).round() as i8).collect())
}

/// A vector and its likeness; those of the same likeness in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Near {
    score: f32,
    number: u64,
}

impl Eq for Near {}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The nearest of a range of records.
fn scan(state: &State, query: &[i8], range: std::ops::Range<u64>, limit: usize) -> io::Result<Vec<Near>> {
    let bytes = record_bytes(query.len());
    let per_chunk = (CHUNK / bytes).max(1);
    let mut chunk = vec![0; per_chunk * bytes];
    let mut best: BinaryHeap<Reverse<Near>> = BinaryHeap::with_capacity(limit + 1);
    for first in range.clone().step_by(per_chunk) {
        let count = per_chunk.min((range.end - first) as usize);
        let records = &mut chunk[..count * bytes];
        state.file.read_exact_at(records, HEADER as u64 + first * bytes as u64)?;
        for record in records.chunks_exact(bytes) {
            let scale = f32::from_le_bytes(four(record, 8));
            let near = Near { score: scale * dot(query, &record[FRAME..]) as f32, number: number(record) };
            if best.len() < limit {
                best.push(Reverse(near));
            } else if best.peek().is_some_and(|Reverse(worst)| near > *worst) {
                best.pop();
                best.push(Reverse(near));
            }
        }
    }
    Ok(best.into_iter().map(|Reverse(near)| near).collect())
}

/// The product of two vectors in 8 bits: at most 2^14 for each component, far below an i32 in sum.
fn dot(query: &[i8], components: &[u8]) -> i32 {
    query.iter().zip(components).map(|(one, other)| i32::from(*one) * i32::from(other.cast_signed())).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use proptest::prelude::*;

    use super::*;

    fn space(dimension: usize) -> Space {
        Space { name: "test".to_owned(), dimension }
    }

    fn unit(vector: Vec<f32>) -> Vec<f32> {
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
        vector.into_iter().map(|x| x / norm).collect()
    }

    #[test]
    fn a_batch_that_a_crash_cut_short_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let vectors = Vectors::open(directory.path(), &space(3)).unwrap();
        vectors.add(&[(2, vec![1.0, 0.0, 0.0]), (5, vec![0.0, 1.0, 0.0])]).unwrap();
        assert!(vectors.add(&[(5, vec![0.0; 3])]).is_err() && vectors.add(&[(6, vec![0.0; 2])]).is_err());
        let path = vectors.path;
        let length = fs::metadata(&path).unwrap().len();
        for damage in [length - 1, length + 7] {
            drop(Vectors::open(directory.path(), &space(3)).unwrap());
            File::options().write(true).open(&path).unwrap().set_len(damage).unwrap();
        }
        let opened = Vectors::open(directory.path(), &space(3)).unwrap();
        assert_eq!((opened.count(), opened.next()), (1, 3));
        opened.add(&[(9, vec![0.0, 0.0, 1.0])]).unwrap();
        assert_eq!(opened.nearest(&[0.0, 0.1, 0.9], 5).unwrap()[0].0, 9);
        // another length is another space, whatever the file was
        assert_eq!(Vectors::open(directory.path(), &space(4)).unwrap().count(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// The nearest are those of the exact cosines, but for ones that are nearly as near.
        #[test]
        fn the_nearest_are_near(
            stored in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, 16), 1..60),
            query in prop::collection::vec(-1.0_f32..1.0, 16),
            gone in prop::collection::hash_set(0..60_u64, 0..20),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let vectors = Vectors::open(directory.path(), &space(16)).unwrap();
            let stored: Vec<(u64, Vec<f32>)> = (0..).zip(stored.into_iter().map(unit)).collect();
            let query = unit(query);
            vectors.add(&stored).unwrap();
            vectors.retain(|number| !gone.contains(&number)).unwrap();
            let exact = |number: u64| stored[number as usize].1.iter().zip(&query).map(|(x, y)| x * y).sum::<f32>();
            let mut expected: Vec<u64> = (0..stored.len() as u64).filter(|number| !gone.contains(number)).collect();
            expected.sort_by(|one, other| exact(*other).total_cmp(&exact(*one)));
            let found = Vectors::open(directory.path(), &space(16)).unwrap().nearest(&query, 5).unwrap();
            prop_assert_eq!(found.len(), expected.len().min(5));
            for ((number, score), expected) in found.into_iter().zip(expected) {
                prop_assert!((score - exact(number)).abs() < 0.02, "{} {}", score, exact(number));
                prop_assert!(exact(number) > exact(expected) - 0.04);
            }
        }
    }
}
