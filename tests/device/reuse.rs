//! Random programs of the host interface, with no wait for the work that they queue: they allocate
//! and drop arrays on several streams, compute, copy, capture graphs, and end streams. Memory that
//! an allocator gives out too early shows as a wrong value.

use std::cell::Cell;

use warpstride::device::Device;
use warpstride::memory::PinnedBuffer;
use warpstride::transfer::InFlight;
use warpstride::{DeviceArray, Graph, Stream, ops};

use crate::backend::{Setup, cases};
use crate::long::short_or_long;
use crate::matrices::Random;

cases! {
    Any random_programs_find_their_values,
    Any threads_with_random_programs_find_their_values,
}

/// Lengths of arrays, in elements.
const LENGTHS: [usize; 5] = [1, 40, 300, 5000, 70_000];
const STREAMS: usize = 4;
/// Most arrays, copies in flight and graphs at a time.
const MOST: [usize; 3] = [16, 6, 3];
/// Floats are exact below it.
const MOST_VALUE: f32 = (1 << 23) as f32;

/// An array whose elements should all have one value.
struct Held {
    id: u64,
    array: DeviceArray<f32>,
    value: f32,
}

struct Program<'a> {
    device: &'a Device,
    random: Random,
    streams: Vec<Stream>,
    held: Vec<Held>,
    /// Copies of arrays, with their values at the time of the call.
    flights: Vec<(InFlight<PinnedBuffer<f32>>, f32)>,
    /// Each adds 1 to the array with this id.
    graphs: Vec<(Graph, u64)>,
    made: u64,
}

#[track_caller]
fn assert_all(elements: &[f32], value: f32) {
    let wrong = elements.iter().position(|&element| element != value);
    assert_eq!(wrong.map(|at| (at, elements[at])), None, "the value should be {value}");
}

impl<'a> Program<'a> {
    /// Returns a program that uses `shared` beside streams of its own.
    fn new(device: &'a Device, seed: u64, shared: &Stream) -> Self {
        let own = (1..STREAMS).map(|_| device.stream().unwrap());
        let streams = own.chain([shared.clone()]).collect();
        let (held, flights, graphs) = (Vec::new(), Vec::new(), Vec::new());
        Self { device, random: Random::new(seed), streams, held, flights, graphs, made: 0 }
    }

    fn stream(&mut self) -> Stream {
        self.streams[self.random.below(STREAMS)].clone()
    }

    /// Allocates an array of `value`. Another stream than that of its memory may write it first.
    fn make(&mut self, length: usize, value: f32) -> Held {
        let mut array = self.device.alloc_array_on(&[length], &self.stream()).unwrap();
        ops::fill_into(value, &mut array, &self.stream()).unwrap();
        self.made += 1;
        Held { id: self.made, array, value }
    }

    fn keep(&mut self, held: Held) {
        if self.held.len() == MOST[0] {
            let at = self.random.below(MOST[0]);
            self.held.swap_remove(at);
        }
        self.held.push(held);
    }

    /// Returns the place of an array. There is always one.
    fn any(&mut self) -> usize {
        if self.held.is_empty() {
            let held = self.make(LENGTHS[1], 3.0);
            self.held.push(held);
        }
        self.random.below(self.held.len())
    }

    fn step(&mut self) {
        let stream = self.stream();
        match self.random.below(26) {
            0..6 => {
                let (length, value) = (LENGTHS[self.random.below(LENGTHS.len())], self.random.below(1000) as f32);
                let held = self.make(length, value);
                self.keep(held);
            }
            6..9 => {
                let at = self.any();
                self.held.swap_remove(at);
            }
            9..12 => self.copy(&stream),
            12..14 => self.add(&stream),
            14..16 => self.download(&stream),
            16 if !self.flights.is_empty() => {
                let at = self.random.below(self.flights.len());
                let (flight, value) = self.flights.swap_remove(at);
                assert_all(&flight.wait().unwrap(), value);
            }
            17..19 => self.upload(&stream),
            19 => self.capture(&stream),
            20..23 if !self.graphs.is_empty() => {
                let at = self.random.below(self.graphs.len());
                let (graph, id) = &self.graphs[at];
                graph.launch(&stream).unwrap();
                self.held.iter_mut().filter(|held| held.id == *id).for_each(|held| held.value += 1.0);
            }
            23 => {
                let at = self.random.below(STREAMS);
                self.streams[at] = self.device.stream().unwrap();
            }
            24 if self.random.below(8) == 0 => drop(self.device.allocator().trim(0).unwrap()),
            25 => {
                let at = self.any();
                assert_all(&self.held[at].array.to_vec().unwrap(), self.held[at].value);
            }
            _ => (),
        }
    }

    /// Copies an array to a new one, through an array that is dropped at once.
    fn copy(&mut self, stream: &Stream) {
        let at = self.any();
        let (length, value) = (self.held[at].array.len(), self.held[at].value);
        let (mut between, mut copied) = (self.make(length, 0.0), self.make(length, 1.0));
        ops::copy_into(&self.held[at].array, &mut between.array, stream).unwrap();
        ops::copy_into(&between.array, &mut copied.array, &self.stream()).unwrap();
        copied.value = value;
        self.keep(copied);
    }

    fn add(&mut self, stream: &Stream) {
        let at = self.any();
        let addend = self.make(self.held[at].array.len(), 5.0);
        let value = self.held[at].value + addend.value;
        if value < MOST_VALUE {
            let mut sum = self.make(addend.array.len(), 0.0);
            ops::add_into(&self.held[at].array, &addend.array, &mut sum.array, stream).unwrap();
            sum.value = value;
            self.keep(sum);
        }
    }

    fn download(&mut self, stream: &Stream) {
        let at = self.any();
        let Held { array, value, .. } = &self.held[at];
        let flight = stream.download(array, self.device.pinned(array.len()).unwrap()).unwrap();
        self.flights.push((flight, *value));
        if self.flights.len() > MOST[1] {
            drop(self.flights.swap_remove(0));
        }
    }

    /// Uploads, and drops what is in flight.
    fn upload(&mut self, stream: &Stream) {
        let at = self.any();
        let value = self.random.below(1000) as f32;
        let Held { array, value: expected, .. } = &mut self.held[at];
        let host = self.device.pinned_from(&vec![value; array.len()]).unwrap();
        drop(stream.upload(host, array).unwrap());
        *expected = value;
    }

    /// Captures the addition of 1, through arrays that only the graph keeps.
    fn capture(&mut self, stream: &Stream) {
        let at = self.any();
        let one = self.make(self.held[at].array.len(), 1.0);
        let Held { array, id, .. } = &mut self.held[at];
        let graph = stream.capture(|s| {
            let mut more = self.device.alloc_array_on(array.shape(), s)?;
            ops::add_into(&*array, &one.array, &mut more, s)?;
            ops::copy_into(&more, array, s)
        });
        self.graphs.push((graph.unwrap(), *id));
        if self.graphs.len() > MOST[2] {
            self.graphs.swap_remove(0);
        }
    }

    /// The long form makes 500 steps, of which the short form makes the first 80.
    fn run(mut self) {
        for _ in 0..short_or_long(80, 500) {
            self.step();
        }
        for (flight, value) in self.flights {
            assert_all(&flight.wait().unwrap(), value);
        }
        for held in self.held {
            assert_all(&held.array.to_vec().unwrap(), held.value);
        }
    }
}

fn random_programs_find_their_values(setup: &Setup) {
    let programs = Cell::new(0);
    // The short form has a quarter of the seeds.
    setup.for_seeds(short_or_long(16, 64), |driver| {
        programs.set(programs.get() + 1);
        let device = setup.open(driver.clone()).unwrap();
        Program::new(&device, programs.get(), device.default_stream()).run();
        assert_eq!((device.take_drop_error(), device.allocator().figures().blocks), (None, 0));
    });
}

fn threads_with_random_programs_find_their_values(setup: &Setup) {
    let programs = Cell::new(0);
    // The short form has a quarter of the seeds.
    setup.for_seeds(short_or_long(16, 64), |driver| {
        programs.set(programs.get() + 3);
        let device = setup.open(driver.clone()).unwrap();
        let shared = device.stream().unwrap();
        std::thread::scope(|scope| {
            for seed in programs.get()..programs.get() + 3 {
                let (device, shared) = (&device, &shared);
                scope.spawn(move || Program::new(device, seed, shared).run());
            }
        });
        assert_eq!((device.take_drop_error(), device.allocator().figures().blocks), (None, 0));
    });
}
