//! Measures the transpose of a matrix of floats that is larger than the device memory it may take:
//! in registered and in ordinary memory of the host, and from file to file. Each stands beside what
//! bounds it, measured in the same run.
//!
//! ```text
//! cargo bench --bench out_of_core -- --gib 32 --budget-gib 4 --folder /dev/shm --file-gib 16
//! ```
//!
//! It prints one JSON object a line. `gbps` counts each byte twice, because it goes both ways;
//! `fraction` is that of the bound: `link_both_ways` for `registered`, the faster of `long_copies`
//! and `tile_copies` for `pageable`, and `plain_files` for `files`. Without `--folder` it writes no
//! files. The matrix and its transpose take twice as much host memory as the matrix. On the
//! software GPU it verifies small matrices, and prints no GB/s.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::Instant;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Value, json};
use warpstride::driver::DriverKind;
use warpstride::io::{ArrayFile, Destination, npy};
use warpstride::out_of_core::{self, Options};
use warpstride::random::SplitMix64;
use warpstride::{Backend, Device};

type Outcome<T> = Result<T, Box<dyn Error>>;

const GIB: usize = 1 << 30;
/// Positions whose elements are looked at in a large result.
const SPOTS: u64 = 1 << 20;
/// Bytes of a piece that a thread reads or writes at once, where nothing says how.
const PIECE: usize = 4 << 20;

fn main() -> Outcome<()> {
    let given = given();
    let number = |name: &str, otherwise: usize| given.get(name).map_or(Ok(otherwise), |text| text.parse());
    let device = Device::open(Backend::Auto)?;
    let is_gpu = device.info().kind == DriverKind::Cuda;
    let unit = if is_gpu { GIB } else { 1 << 16 };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).div_ceil(2);
    let bench = Bench {
        is_gpu,
        memory: number("budget-gib", 4)? * unit,
        threads: NonZero::new(number("threads", threads)?).ok_or("give at least one thread")?,
        samples: number("samples", if is_gpu { 3 } else { 1 })?.max(1),
        device,
    };
    // A user that gives sizes knows how much memory the host has.
    bench.device.set_pinned_limit(usize::MAX);
    let name = &bench.device.info().name;
    println!("{}", json!({ "what": "run", "device": name, "threads": bench.threads, "device_memory": bench.memory }));
    // A small one, of which all is verified, and the large one.
    let small = Bench { memory: 1 << 18, samples: 1, device: bench.device.clone(), ..bench };
    small.in_memory([500, 701])?;
    bench.in_memory(shape(number("gib", 32)? * unit))?;
    if let Some(folder) = given.get("folder") {
        bench.device.trim_pinned(0)?;
        bench.in_files(shape(number("file-gib", 16)? * unit), Path::new(folder))?;
    }
    Ok(())
}

/// The options, by their names.
fn given() -> BTreeMap<String, String> {
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    words.chunks(2).filter_map(|pair| Some((pair.first()?.strip_prefix("--")?.into(), pair.get(1)?.clone()))).collect()
}

/// Element `at` of a matrix: its bits.
fn element(at: usize) -> f32 {
    f32::from_bits(SplitMix64::at(0, at as u64) as u32)
}

/// Rows and columns of a matrix of about this number of bytes, about as many.
fn shape(bytes: usize) -> [usize; 2] {
    let len = bytes / size_of::<f32>();
    let rows = (len as f64).sqrt() as usize / 32 * 32;
    [rows, len / rows / 32 * 32]
}

/// Element `at` of the transpose of a matrix of `[rows, columns]`.
fn transposed([rows, columns]: [usize; 2], at: usize) -> f32 {
    element(at % rows * columns + at / rows)
}

/// Returns whether a transpose has the right elements: a small one everywhere, a large one at its
/// ends and at drawn places.
fn is_right(shape: [usize; 2], result: &[f32]) -> bool {
    let is_right = |at: usize| result[at].to_bits() == transposed(shape, at).to_bits();
    let all = result.len();
    if all as u64 <= SPOTS {
        return (0..all).into_par_iter().all(is_right);
    }
    let drawn = (0..SPOTS).into_par_iter().all(|spot| is_right(SplitMix64::at(1, spot) as usize % all));
    drawn && (0..shape[0]).into_par_iter().all(|at| is_right(at) && is_right(all - 1 - at))
}

struct Bench {
    device: Device,
    is_gpu: bool,
    memory: usize,
    threads: NonZero<usize>,
    samples: usize,
}

impl Bench {
    fn options(&self) -> Options<'static> {
        Options { device_memory: Some(self.memory), threads: Some(self.threads), ..Options::default() }
    }

    /// Prints a line, and returns its GB/s. `bytes` are those of the matrix.
    fn say(&self, what: &str, bytes: usize, mut seconds: Vec<f64>, bound: Option<f64>, more: Value) -> Option<f64> {
        seconds.sort_unstable_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let gbps = self.is_gpu.then(|| 2.0 * bytes as f64 / median / 1e9);
        let fraction = gbps.zip(bound).map(|(gbps, bound)| gbps / bound);
        let seconds = self.is_gpu.then_some(seconds);
        let mut line = json!({ "what": what, "bytes": bytes, "seconds": seconds, "gbps": gbps, "fraction": fraction });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        println!("{line}");
        gbps
    }

    /// Returns the seconds that `work` takes, each time after `before`.
    fn times<E>(
        &self,
        mut before: impl FnMut() -> Result<(), E>,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<f64>, E> {
        let time = |_| {
            before()?;
            let start = Instant::now();
            work()?;
            Ok(start.elapsed().as_secs_f64())
        };
        (0..self.samples).map(time).collect()
    }

    /// Measures large copies in both directions at once.
    fn both_ways(&self, bytes: usize) -> Outcome<Option<f64>> {
        let device = &self.device;
        let streams = [device.stream()?, device.stream()?];
        let mut buffers = [device.zeros::<u8>(bytes)?, device.zeros::<u8>(bytes)?];
        let mut hosts = Some((device.pinned_zeros::<u8>(bytes)?, device.pinned_zeros::<u8>(bytes)?));
        let copy = || {
            let (up, down) = hosts.take().ok_or("the copies before have landed")?;
            let up = streams[0].upload(up, buffers[0].view_mut(&[bytes])?)?;
            let down = streams[1].download(buffers[1].view(&[bytes])?, down)?;
            hosts = Some((up.wait()?, down.wait()?));
            Outcome::Ok(())
        };
        let seconds = self.times(|| Ok(device.synchronize()?), copy)?;
        Ok(self.say("link_both_ways", bytes, seconds, None, json!({})))
    }

    /// Measures the transpose of a matrix in memory.
    fn transpose(
        &self,
        what: &str,
        source: &[f32],
        shape: [usize; 2],
        result: &mut [f32],
        bound: Option<f64>,
    ) -> warpstride::Result<()> {
        let (result, mut tiles) = (RefCell::new(result), 0);
        let clear = || -> warpstride::Result<()> {
            result.borrow_mut().par_iter_mut().for_each(|place| *place = 0.0);
            Ok(())
        };
        let work = || -> warpstride::Result<()> {
            let result = &mut **result.borrow_mut();
            tiles = out_of_core::permute(&self.device, source, &shape, &[1, 0], result, self.options())?.tiles;
            Ok(())
        };
        let seconds = self.times(clear, work)?;
        let verified = is_right(shape, &result.borrow());
        let more = json!({ "shape": shape, "tiles": tiles, "verified": verified });
        self.say(what, size_of_val(source), seconds, bound, more);
        Ok(())
    }

    fn in_memory(&self, shape: [usize; 2]) -> Outcome<()> {
        let (device, bytes) = (&self.device, shape[0] * shape[1] * size_of::<f32>());
        let link = self.both_ways(self.memory / 4)?;
        device.trim_pinned(0)?;
        let mut source = vec![0.0_f32; shape[0] * shape[1]];
        source.par_iter_mut().enumerate().for_each(|(at, place)| *place = element(at));
        let mut result = vec![0.0_f32; source.len()];
        // The system maps its pages now.
        result.par_iter_mut().for_each(|place| *place = 1.0);
        device.default_stream().scope(|s| {
            let start = Instant::now();
            let (source, mut result) = (s.register(&mut source)?, s.register(&mut result)?);
            self.say("register", bytes, vec![start.elapsed().as_secs_f64()], None, json!({}));
            self.transpose("registered", &source, shape, &mut result, link)
        })?;
        let seconds = self.times(|| Ok(()), || self.long_copies(&source, &mut result))?;
        let long = self.say("long_copies", bytes, seconds, None, json!({}));
        let copies = || out_of_core::host_copies(device, &source, &shape, &[1, 0], &mut result, self.options());
        let seconds = self.times(|| Ok(()), copies)?;
        let tiles = self.say("tile_copies", bytes, seconds, None, json!({}));
        // The faster copies are the bound.
        let bound = long.into_iter().chain(tiles).reduce(f64::max);
        Ok(self.transpose("pageable", &source, shape, &mut result, bound)?)
    }

    /// Copies an array to slots and slots to another array, both at once, in long pieces.
    fn long_copies(&self, source: &[f32], result: &mut [f32]) -> Outcome<()> {
        let [reading, writing] = [self.pool()?, self.pool()?];
        let (len, piece) = (self.memory / 2 / size_of::<f32>(), PIECE / size_of::<f32>());
        let (mut slots, full) = (vec![0.0_f32; len], vec![1.0_f32; len]);
        thread::scope(|threads| {
            threads.spawn(|| {
                reading.install(|| {
                    for part in source.chunks(len) {
                        let places = slots.par_chunks_mut(piece).zip(part.par_chunks(piece));
                        places.for_each(|(place, part)| place[..part.len()].copy_from_slice(part));
                    }
                });
            });
            writing.install(|| {
                for part in result.chunks_mut(len) {
                    let places = part.par_chunks_mut(piece).zip(full.par_chunks(piece));
                    places.for_each(|(place, slot)| place.copy_from_slice(&slot[..place.len()]));
                }
            });
        });
        Ok(())
    }

    fn in_files(&self, shape: [usize; 2], folder: &Path) -> Outcome<()> {
        let bytes = shape[0] * shape[1] * size_of::<f32>();
        let folder = tempfile::tempdir_in(folder)?;
        let [input, output, plain] = ["in.npy", "out.npy", "plain"].map(|name| folder.path().join(name));
        let header = npy::header_bytes("<f4", &shape);
        File::create(&input)?.write_all(&header)?;
        write_all(&input, header.len(), bytes, |at, piece| {
            let elements = piece.chunks_exact_mut(4).enumerate();
            elements.for_each(|(number, place)| place.copy_from_slice(&element(at / 4 + number).to_le_bytes()));
        })?;
        let remove = |path: &Path| if path.exists() { fs::remove_file(path) } else { Ok(()) };
        let [reading, writing] = [self.pool()?, self.pool()?];
        let plainly = || {
            File::create(&plain)?.set_len(bytes as u64)?;
            let (read, written) = thread::scope(|threads| {
                let read = threads.spawn(|| reading.install(|| read_all(&input, header.len(), bytes)));
                let written = writing.install(|| write_all(&plain, 0, bytes, |_, _| ()));
                (read.join(), written)
            });
            read.map_err(|_| "a thread panics")??;
            written?;
            Outcome::Ok(File::open(&plain)?.sync_all()?)
        };
        let seconds = self.times(|| Ok(remove(&plain)?), plainly)?;
        let bound = self.say("plain_files", bytes, seconds, None, json!({}));
        remove(&plain)?;
        let mut tiles = 0;
        let permute = || {
            let (source, target) = (npy::Reader::open(&input)?, Destination::new(&output)?);
            tiles = out_of_core::permute_file(&self.device, &source, &[1, 0], &target, self.options())?.tiles;
            Outcome::Ok(())
        };
        let seconds = self.times(|| Ok(remove(&output)?), permute)?;
        let mut result = File::open(&output)?;
        let start = npy::header_bytes("<f4", &[shape[1], shape[0]]).len() as u64;
        let mut verified = npy::Reader::open(&output)?.shape() == [shape[1], shape[0]];
        for spot in 0..SPOTS / 16 {
            let (at, mut found) = (SplitMix64::at(1, spot) as usize % (bytes / 4), [0; 4]);
            result.seek(SeekFrom::Start(start + 4 * at as u64))?;
            result.read_exact(&mut found)?;
            verified &= found == transposed(shape, at).to_le_bytes();
        }
        let more = json!({ "shape": shape, "tiles": tiles, "verified": verified });
        self.say("files", bytes, seconds, bound, more);
        Ok(())
    }

    fn pool(&self) -> Outcome<ThreadPool> {
        Ok(ThreadPoolBuilder::new().num_threads(self.threads.get()).build()?)
    }
}

/// Calls `work` on each thread's own handle of a file, at the start of each piece of the `bytes`
/// from `start` on, with room for the piece.
fn each_piece(
    path: &Path,
    start: usize,
    bytes: usize,
    work: impl Fn(&mut File, usize, &mut [u8]) -> io::Result<()> + Sync + Send,
) -> io::Result<()> {
    let own = || (OpenOptions::new().read(true).write(true).open(path), vec![1; PIECE]);
    (0..bytes.div_ceil(PIECE)).into_par_iter().try_for_each_init(own, |(file, room), piece| {
        let (at, file) = (piece * PIECE, file.as_mut().map_err(|error| io::Error::from(error.kind()))?);
        file.seek(SeekFrom::Start((start + at) as u64))?;
        work(file, at, &mut room[..PIECE.min(bytes - at)])
    })
}

fn read_all(path: &Path, start: usize, bytes: usize) -> io::Result<()> {
    each_piece(path, start, bytes, |file, _, piece| file.read_exact(piece))
}

/// Writes pieces that `fill` fills, from the first byte's offset on.
fn write_all(path: &Path, start: usize, bytes: usize, fill: impl Fn(usize, &mut [u8]) + Sync + Send) -> io::Result<()> {
    each_piece(path, start, bytes, |file, at, piece| {
        fill(at, piece);
        file.write_all(piece)
    })
}
