//! Bytes and messages of each GPU, and the time of the busiest port.

use super::description::Link;

/// The work of the ports of one class in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// The bytes of all messages.
    pub bytes: u64,
    /// The port with the most bytes of one direction: the number of its GPU, or of its host.
    pub busiest_port: usize,
    /// True if that port sends them, false if it gets them.
    pub busiest_sends: bool,
    /// Its bytes.
    pub busiest_bytes: u64,
    /// The most messages that a rank sends.
    pub messages: u64,
    /// The most steps in which a rank sends them. Over the network a step has less than 512 MiB.
    pub steps: u64,
    /// Milliseconds of the busiest port, with a start for each step of a rank.
    pub ms: f64,
}

/// The bytes of a step at most: the last whole line of 128 bytes below 512 MiB.
const STEP: u64 = (512 << 20) - 128;

/// Returns the number of steps of a message over the network.
pub(super) fn steps(bytes: u64) -> u64 {
    bytes.div_ceil(STEP)
}

/// The messages of each rank over the ports of one class.
pub(super) struct Traffic {
    pub(super) sent: Vec<u64>,
    pub(super) got: Vec<u64>,
    pub(super) messages: Vec<u64>,
    pub(super) steps: Vec<u64>,
}

impl Traffic {
    pub(super) fn none(ranks: usize) -> Self {
        let none = || vec![0; ranks];
        Self { sent: none(), got: none(), messages: none(), steps: none() }
    }

    /// Adds a message within a host, which takes one step.
    pub(super) fn push(&mut self, from: usize, to: usize, bytes: u64) {
        self.sent[from] += bytes;
        self.got[to] += bytes;
        self.messages[from] += 1;
        self.steps[from] += 1;
    }

    /// Returns the load of ports that each belong to `gpus` ranks.
    pub(super) fn load(&self, link: Link, gpus: usize) -> Load {
        let most = |counts: &[u64]| counts.iter().copied().max().unwrap_or(0);
        let ports = |bytes: &[u64]| bytes.chunks(gpus).map(|port| port.iter().sum::<u64>()).collect::<Vec<_>>();
        let mut load = Load {
            bytes: self.sent.iter().sum(),
            busiest_sends: true,
            messages: most(&self.messages),
            steps: most(&self.steps),
            ..Load::default()
        };
        for (sends, bytes) in [(true, ports(&self.sent)), (false, ports(&self.got))] {
            for (port, bytes) in bytes.into_iter().enumerate() {
                if bytes > load.busiest_bytes {
                    (load.busiest_port, load.busiest_sends, load.busiest_bytes) = (port, sends, bytes);
                }
            }
        }
        // The ranks of a port start their messages at the same times, so that their starts are one.
        let time = |steps: u64, bytes: u64| steps as f64 * link.start_us / 1e3 + bytes as f64 / (link.gbps * 1e6);
        let of_ports = self.sent.chunks(gpus).zip(self.steps.chunks(gpus));
        let of_ports = of_ports.map(|(sent, steps)| time(most(steps), sent.iter().sum()));
        load.ms = of_ports.fold(time(u64::from(load.bytes > 0), load.busiest_bytes), f64::max);
        load
    }
}
