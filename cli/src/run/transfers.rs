//! Measurements of copies between host and device: every kind of host memory, direction and size,
//! compared with the link between the two.

use super::table::{Column, Table, number, percent, verified};
use warpstride::error::counted;
use warpstride::roofline::record::Milliseconds;

/// The PCI Express link of a device.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Link {
    /// Its generation, from 1.
    pub(crate) generation: u32,
    /// Its lanes.
    pub(crate) lanes: u32,
    /// GB/s of one direction, before the protocol takes its part.
    pub(crate) gbps: f64,
}

impl Link {
    /// Returns the link of a generation and a number of lanes; `None` for a generation that is not
    /// specified yet.
    pub(crate) fn new(generation: u32, lanes: u32) -> Option<Self> {
        // Transfers of one bit on one lane in 10^9 a second, and the bits of payload of those on
        // the line: PCI Express Base Specification, revision 6.0.
        let (rate, payload) = match generation {
            1 => (2.5, 8.0 / 10.0),
            2 => (5.0, 8.0 / 10.0),
            3 => (8.0, 128.0 / 130.0),
            4 => (16.0, 128.0 / 130.0),
            5 => (32.0, 128.0 / 130.0),
            6 => (64.0, 242.0 / 256.0),
            _ => return None,
        };
        Some(Self { generation, lanes, gbps: rate * payload / 8.0 * f64::from(lanes) })
    }
}

/// A kind of host memory, and the way that bytes take from it or to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostSide {
    /// Ordinary memory, as `upload` and `download` copy it.
    Pageable,
    /// Ordinary memory that nothing has used since the system gave it, as `download` takes it.
    FreshPageable,
    /// Ordinary memory, which the driver copies by itself.
    PageableByDriver,
    /// Page-locked memory from a device.
    Pinned,
    /// Ordinary memory that was page-locked where it lies.
    Registered,
    /// Page-locked memory that the host's caches pass by.
    WriteCombined,
}

impl HostSide {
    /// All kinds, in the order of tables.
    pub(crate) const ALL: [Self; 6] = [
        Self::Pageable,
        Self::FreshPageable,
        Self::PageableByDriver,
        Self::Pinned,
        Self::Registered,
        Self::WriteCombined,
    ];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::FreshPageable => "pageable, fresh",
            Self::PageableByDriver => "pageable, by the driver",
            Self::Pinned => "pinned",
            Self::Registered => "registered",
            Self::WriteCombined => "write-combined",
        }
    }
}

/// The direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// From the host to the device.
    H2d,
    /// From the device to the host.
    D2h,
    /// Both at once, on two streams; the bytes are those of both.
    Both,
}

impl Direction {
    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::H2d => "H2D",
            Self::D2h => "D2H",
            Self::Both => "both ways",
        }
    }
}

/// The measurement of one copy.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Transfer {
    /// The host's memory.
    pub(crate) memory: HostSide,
    /// The direction.
    pub(crate) direction: Direction,
    /// Bytes in each direction.
    pub(crate) bytes: u64,
    /// True if every byte arrived; a copy that lost one is not timed.
    pub(crate) verified: bool,
    /// Milliseconds by the host's clock, from the call until the bytes have arrived; `None` on the
    /// software GPU.
    pub(crate) ms: Option<Milliseconds>,
    /// 10^9 bytes a second at the median.
    pub(crate) gbps: Option<f64>,
    /// The same by events around the copy alone, behind a kernel that holds the stream, as
    /// nvbandwidth measures; `None` for ordinary memory, which the host copies too.
    pub(crate) gbps_by_events: Option<f64>,
}

/// The cost of making host memory page-locked.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pinning {
    /// [`HostSide::Pinned`], which also allocates, or [`HostSide::Registered`].
    pub(crate) memory: HostSide,
    /// The bytes.
    pub(crate) bytes: u64,
    /// Milliseconds to make it so; `None` on the software GPU, as the other times.
    pub(crate) ms: Option<f64>,
    /// Milliseconds to give it back.
    pub(crate) release_ms: Option<f64>,
    /// Copies to the device after which that time is won back against ordinary memory; `None` if
    /// never.
    pub(crate) break_even: Option<u64>,
}

/// Frames to the device and back, the first story of the crate.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RoundTrip {
    /// The way that the frames take.
    pub(crate) way: String,
    /// Frames of a batch.
    pub(crate) frames: usize,
    /// Bytes of a batch in each direction.
    pub(crate) bytes: u64,
    /// True if every byte came back.
    pub(crate) verified: bool,
    /// Milliseconds of a batch there and back; `None` on the software GPU.
    pub(crate) ms: Option<f64>,
    /// 10^9 bytes a second, of both directions.
    pub(crate) gbps: Option<f64>,
}

/// The copies between a host and a device, measured together.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Transfers {
    /// The link; `None` where the system does not say.
    pub(crate) link: Option<Link>,
    /// Threads of the host that may copy.
    pub(crate) threads: usize,
    /// The copies.
    pub(crate) copies: Vec<Transfer>,
    /// The cost of page-locked memory.
    pub(crate) pinning: Vec<Pinning>,
    /// The frames.
    pub(crate) frames: Vec<RoundTrip>,
}

impl Transfers {
    /// Returns the part of the link that a copy reaches.
    pub(crate) fn fraction_of_link(&self, copy: &Transfer) -> Option<f64> {
        let directions = if copy.direction == Direction::Both { 2.0 } else { 1.0 };
        Some(copy.gbps? / (directions * self.link?.gbps))
    }

    /// The copies whose bytes were wrong.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let copies =
            self.copies.iter().filter(|copy| !copy.verified).map(|copy| {
                format!("{} {} of {}", copy.memory.name(), copy.direction.name(), counted(copy.bytes, "byte"))
            });
        copies.chain(self.frames.iter().filter(|trip| !trip.verified).map(|trip| trip.way.clone())).collect()
    }

    /// The copies as a table.
    pub(crate) fn table(&self) -> Table {
        let columns: [Column<'_, Transfer>; 8] = [
            ("host memory", &|copy| copy.memory.name().into()),
            ("direction", &|copy| copy.direction.name().into()),
            ("bytes", &|copy| copy.bytes.to_string()),
            ("verified", &|copy| verified(copy.verified)),
            ("ms", &|copy| number(copy.ms.map(|ms| ms.median), 4, "")),
            ("GB/s", &|copy| number(copy.gbps, 2, "")),
            ("of link", &|copy| percent(self.fraction_of_link(copy))),
            ("GB/s by events", &|copy| number(copy.gbps_by_events, 2, "")),
        ];
        Table::by(2, &columns, &self.copies)
    }

    /// The cost of page-locked memory as a table.
    pub(crate) fn pinning_table(&self) -> Table {
        let by = |memory| if memory == HostSide::Registered { "registering" } else { "allocating" };
        let columns: [Column<'_, Pinning>; 5] = [
            ("page-locked by", &|cost| by(cost.memory).into()),
            ("bytes", &|cost| cost.bytes.to_string()),
            ("ms", &|cost| number(cost.ms, 3, "")),
            ("ms to give back", &|cost| number(cost.release_ms, 3, "")),
            ("copies until it pays", &|cost| cost.break_even.map_or("-".into(), |copies| copies.to_string())),
        ];
        Table::by(1, &columns, &self.pinning)
    }

    /// The frames as a table.
    pub(crate) fn frames_table(&self) -> Table {
        let columns: [Column<'_, RoundTrip>; 6] = [
            ("frames there and back", &|trip| trip.way.clone()),
            ("frames", &|trip| trip.frames.to_string()),
            ("bytes", &|trip| trip.bytes.to_string()),
            ("verified", &|trip| verified(trip.verified)),
            ("ms", &|trip| number(trip.ms, 2, "")),
            ("GB/s", &|trip| number(trip.gbps, 2, "")),
        ];
        Table::by(1, &columns, &self.frames)
    }

    /// A line about the link.
    pub(crate) fn link_line(&self) -> String {
        match self.link {
            Some(Link { generation, lanes, gbps }) => {
                format!("The link is PCIe {generation} x{lanes}: {gbps:.1} GB/s in each direction before the protocol.")
            }
            None => "The system does not say which link the device has.".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_the_rates_of_their_generations() {
        let gbps = |generation, lanes| Link::new(generation, lanes).unwrap().gbps;
        assert_eq!((gbps(1, 16), gbps(2, 8)), (4.0, 4.0));
        assert!((gbps(3, 16) - 15.75).abs() < 0.01 && (gbps(5, 16) - 63.02).abs() < 0.01);
        assert!((gbps(6, 16) - 121.0).abs() < 0.01);
        assert_eq!((Link::new(0, 16), Link::new(7, 16)), (None, None));
    }
}
