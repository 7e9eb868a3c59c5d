//! The cases of a run by what causes compare, built once: no cause looks at every case for each.

use std::collections::HashMap;
use std::hash::Hash;

use super::Run;
use super::launches::{self, Launches};
use super::reasons::{self, CLEAR, is_the_copy};
use warpstride::counters::Counters;
use warpstride::element::DType;
use warpstride::roofline::record::Record;

/// An operation on an array, by whichever kernel.
type Work<'r> = (&'r str, Option<DType>, Option<DType>, &'r [usize], Option<&'r [usize]>, Option<usize>, Option<usize>);
/// Bytes of an element of the source and of the result, and the percent that is written.
type Mix = (usize, usize, u128);
/// A kernel that makes the same accesses to an array of one shape.
type Accesses<'r> = (Option<&'r str>, &'r [usize], Option<Counters>);
/// An operation by a kernel, and whether a model predicts its time.
type ByKernel<'r> = (Option<&'r str>, &'r str, Option<&'r str>, bool);

/// An operation on an array, and the sectors and the requests of its accesses.
type Touched<'r> = (Work<'r>, [(u64, u64); 2]);

/// Cases, each with the part that it reaches and its place in the run.
type Parts = Vec<(f64, usize)>;
/// Those of each kernel.
type Kernels<'r> = HashMap<Option<&'r str>, Parts>;

/// The cases of a run, each by its place there.
pub(super) struct Index<'r> {
    pub(super) run: &'r Run,
    fastest: HashMap<(Work<'r>, &'static str), Fastest<'r>>,
    peers: HashMap<(Mix, u32, &'static str), Fastest<'r>>,
    /// By the bytes of a case: those of a request, the greatest part of a ceiling so far, and the
    /// place. The largest requests come first.
    requests: HashMap<u64, Vec<(f64, f64, usize)>>,
    limiting: HashMap<Accesses<'r>, Launches>,
    graphs: HashMap<Accesses<'r>, usize>,
    /// Cases without many launches: the first one, and the first one of another kernel.
    single: HashMap<Touched<'r>, Vec<usize>>,
    /// The bytes and the milliseconds of the largest launch.
    largest: HashMap<ByKernel<'r>, (f64, f64)>,
}

/// The cases of each kernel by the part of a speed that they reach, the fastest first.
struct Fastest<'r>(Vec<(Option<&'r str>, Parts)>);

impl<'r> Fastest<'r> {
    fn of(kernels: Kernels<'r>) -> Self {
        let mut kernels: Vec<_> = kernels.into_iter().collect();
        let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1));
        kernels.iter_mut().for_each(|(_, cases)| cases.sort_by(order));
        kernels.sort_by(|(_, a), (_, b)| order(&a[0], &b[0]));
        Self(kernels)
    }

    /// Returns the fastest case of another kernel that reaches more than this part and `fits`.
    fn beyond(&self, part: f64, kernel: Option<&str>, fits: impl Fn(usize) -> bool) -> Option<(f64, usize)> {
        let mut best: Option<(f64, usize)> = None;
        for (_, cases) in self.0.iter().filter(|(other, _)| *other != kernel) {
            let is_better = |case: &(f64, usize)| case.0 > part && best.is_none_or(|best| *case > best);
            if !is_better(&cases[0]) {
                break;
            }
            best = cases.iter().take_while(|case| is_better(case)).find(|(_, at)| fits(*at)).copied().or(best);
        }
        best
    }
}

impl<'r> Index<'r> {
    pub(super) fn of(run: &'r Run) -> Self {
        let (mut fastest, mut peers) =
            (HashMap::<_, HashMap<_, Vec<_>>>::new(), HashMap::<_, HashMap<_, Vec<_>>>::new());
        let mut requests: HashMap<u64, Vec<(f64, f64, usize)>> = HashMap::new();
        let (mut limiting, mut graphs) = (HashMap::new(), HashMap::new());
        for (at, case) in run.cases.iter().enumerate() {
            let kernel = case.kernel.as_deref();
            if let Some((part, speed)) = reasons::reached(case).filter(|_| case.doubt().is_none()) {
                if !is_the_copy(case) {
                    fastest.entry((work_of(case), speed)).or_default().entry(kernel).or_default().push((part, at));
                }
                if let Some(mix) = reasons::mix(case).filter(|_| !reasons::has_gaps(case)) {
                    let key = (mix, octave(case), speed);
                    peers.entry(key).or_default().entry(kernel).or_default().push((part, at));
                }
            }
            let size = reasons::bytes_a_request(case).zip(case.fraction_of_ceiling);
            if let Some((size, part)) = size.filter(|_| !is_the_copy(case)) {
                requests.entry(case.subject.bytes).or_default().push((size, part, at));
            }
            if case.counters.is_none() {
                continue;
            }
            if let Some(many) = launches::limiting(run, case) {
                limiting.entry(accesses(case)).or_insert(many);
            }
            if case.predicted.is_none() {
                graphs.entry(accesses(case)).or_insert(at);
            }
        }
        for cases in requests.values_mut() {
            cases.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.2.cmp(&a.2)));
            let mut most = f64::MIN;
            for (_, part, _) in cases {
                most = most.max(*part);
                *part = most;
            }
        }
        let (fastest, peers) = (fastest_of(fastest), fastest_of(peers));
        let (single, largest) = (HashMap::new(), HashMap::new());
        let index = Self { run, fastest, peers, requests, limiting, graphs, single, largest };
        let (single, largest) = (index.single_launches(), index.largest_launches());
        Self { single, largest, ..index }
    }

    /// Two cases of each work and its accesses suffice, because a case asks for one of another
    /// kernel than its own.
    fn single_launches(&self) -> HashMap<Touched<'r>, Vec<usize>> {
        let run = self.run;
        let mut single: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, case) in run.cases.iter().enumerate() {
            let can_be_named = case.doubt().is_none() && case.ms.is_some() && reasons::kernel_name(case).is_some();
            let Some(touched) = launches::touched(case).filter(|_| can_be_named) else { continue };
            if self.launches(case).is_some() || case.launches.is_some_and(|count| count != 1) {
                continue;
            }
            let first = single.entry((work_of(case), touched)).or_default();
            if first.len() < 2 && first.iter().all(|&other| run.cases[other].kernel != case.kernel) {
                first.push(at);
            }
        }
        single
    }

    fn largest_launches(&self) -> HashMap<ByKernel<'r>, (f64, f64)> {
        let mut largest = HashMap::new();
        for case in &self.run.cases {
            let Some((launches, ms)) = self.launches(case).zip(case.ms) else { continue };
            let count = launches.count as f64;
            let (bytes, ms) = (case.subject.bytes as f64 / count, ms.median / count);
            let kept = largest.entry(by_kernel(case)).or_insert((bytes, ms));
            if bytes >= kept.0 {
                *kept = (bytes, ms);
            }
        }
        largest
    }

    /// The number of launches of a case; where the document lacks it, perhaps that of another one
    /// with the same kernel and the same accesses.
    pub(super) fn launches(&self, record: &Record) -> Option<Launches> {
        let like = || self.limiting.get(&accesses(record)).map(|like| like.of_like());
        launches::limiting(self.run, record).or_else(|| if record.launches.is_none() { like() } else { None })
    }

    /// The first case with the same accesses that has no model, as a graph.
    pub(super) fn graph(&self, record: &Record) -> Option<&'r Record> {
        self.graphs.get(&accesses(record)).map(|&at| &self.run.cases[at])
    }

    /// The bytes and the milliseconds of the largest launch of a case's kernel.
    pub(super) fn largest_launch(&self, record: &Record) -> Option<(f64, f64)> {
        self.largest.get(&by_kernel(record)).copied()
    }

    /// The place of the first case of another kernel that does the same operation on the same array
    /// with accesses to as many sectors, but not by many launches. Its times are not in doubt.
    pub(super) fn one_launch(&self, record: &Record) -> Option<usize> {
        let first = self.single.get(&(work_of(record), launches::touched(record)?))?;
        first.iter().copied().find(|&at| self.run.cases[at].kernel != record.kernel)
    }

    /// The fastest case of another kernel for the same operation on the same array, if it reaches
    /// clearly more of the same speed.
    pub(super) fn faster(&self, record: &Record) -> Option<(f64, usize)> {
        let (part, speed) = reasons::reached(record)?;
        self.fastest.get(&(work_of(record), speed))?.beyond(part + CLEAR, record.kernel.as_deref(), |_| true)
    }

    /// The fastest case of another kernel and of a like size that has no gaps and moves as many
    /// bytes for each element, if it reaches clearly more of the same speed and `fits`.
    pub(super) fn faster_peer(&self, record: &Record, fits: impl Fn(&Record) -> bool) -> Option<usize> {
        let ((part, speed), mix) = (reasons::reached(record)?, reasons::mix(record)?);
        let near = octave(record).saturating_sub(2)..=octave(record) + 2;
        let fits = |at: usize| {
            let other = &self.run.cases[at];
            let sizes = other.subject.bytes as f64 / record.subject.bytes as f64;
            (0.25..=4.0).contains(&sizes) && fits(other)
        };
        let of_octave =
            |octave| self.peers.get(&(mix, octave, speed))?.beyond(part + CLEAR, record.kernel.as_deref(), fits);
        near.filter_map(of_octave).max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, at)| at)
    }

    /// The case of as many bytes with the largest requests that reaches more of its ceiling, and
    /// the bytes of its requests.
    pub(super) fn larger_requests(&self, record: &Record) -> Option<(f64, &'r Record)> {
        let (cases, part) = (self.requests.get(&record.subject.bytes)?, record.fraction_of_ceiling?);
        let (size, _, at) = cases.get(cases.partition_point(|(_, most, _)| *most <= part))?;
        Some((*size, &self.run.cases[*at]))
    }
}

fn fastest_of<K: Eq + Hash>(of: HashMap<K, Kernels<'_>>) -> HashMap<K, Fastest<'_>> {
    of.into_iter().map(|(key, kernels)| (key, Fastest::of(kernels))).collect()
}

fn work_of(record: &Record) -> Work<'_> {
    let subject = &record.subject;
    let (op, shape, axes) = (&*subject.op, &*subject.shape, subject.axes.as_deref());
    (op, subject.dtype, subject.from, shape, axes, subject.step, subject.channels)
}

fn accesses(record: &Record) -> Accesses<'_> {
    (record.kernel.as_deref(), &record.subject.shape, record.counters)
}

fn by_kernel(record: &Record) -> ByKernel<'_> {
    let subject = &record.subject;
    (record.kernel.as_deref(), &subject.op, subject.variant.as_deref(), record.predicted.is_some())
}

/// The logarithm of a case's bytes to base 2.
fn octave(record: &Record) -> u32 {
    record.subject.bytes.checked_ilog2().unwrap_or(0)
}

#[cfg(test)]
mod tests;
