//! The configuration of `cuLaunchKernelEx`, and its attributes.

use std::ffi::c_uint;

use crate::arguments::{Handle, In};
use crate::code::{Failure, Outcome};
use crate::stream::{Event, Stream};

/// The attributes of launches, by their numbers in `cuda.h`.
mod attribute {
    use std::ffi::c_uint;

    pub(super) const IGNORE: c_uint = 0;
    pub(super) const ACCESS_POLICY: c_uint = 1;
    pub(super) const COOPERATIVE: c_uint = 2;
    pub(super) const SYNCHRONIZATION_POLICY: c_uint = 3;
    pub(super) const CLUSTER: c_uint = 4;
    pub(super) const CLUSTER_SCHEDULING: c_uint = 5;
    pub(super) const PROGRAMMATIC_SERIALIZATION: c_uint = 6;
    pub(super) const PROGRAMMATIC_EVENT: c_uint = 7;
    pub(super) const PRIORITY: c_uint = 8;
    pub(super) const SYNC_DOMAIN_MAP: c_uint = 9;
    pub(super) const SYNC_DOMAIN: c_uint = 10;
    pub(super) const PREFERRED_CLUSTER: c_uint = 11;
    pub(super) const COMPLETION_EVENT: c_uint = 12;
    pub(super) const CARVEOUT: c_uint = 14;
    pub(super) const NVLINK_SCHEDULING: c_uint = 16;
}

/// The most attributes of a launch.
const MOST: c_uint = 64;

/// `CUlaunchConfig`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Config {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) dynamic_shared: c_uint,
    pub(super) stream: Handle<Stream>,
    attributes: In<Attribute>,
    count: c_uint,
}

/// `CUlaunchAttribute`: its value is a union of 64 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Attribute {
    id: c_uint,
    _pad: c_uint,
    value: [c_uint; 16],
}

/// The attributes of a launch.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) is_cooperative: bool,
    /// The shape of a cluster in blocks.
    pub(super) cluster: Option<[c_uint; 3]>,
    /// The events that the launch records.
    pub(super) events: Vec<Handle<Event>>,
}

impl Extras {
    /// Reads the attributes; refuses those that the software GPU does not know.
    pub(super) fn read(config: &Config) -> Outcome<Self> {
        let mut extras = Self::default();
        if config.count > MOST {
            return Err(Failure::value(format!(
                "a launch has {} attributes, and at most {MOST} are read",
                config.count
            )));
        }
        for Attribute { id, value, .. } in config.attributes.list(config.count as usize)? {
            match id {
                attribute::COOPERATIVE => extras.is_cooperative = value[0] != 0,
                attribute::CLUSTER => extras.cluster = Some([value[0], value[1], value[2]]),
                // The event may be recorded before the launch ends; at its end is one of those
                // times.
                attribute::PROGRAMMATIC_EVENT | attribute::COMPLETION_EVENT => {
                    let event = Handle::new(u64::from(value[1]) << 32 | u64::from(value[0]));
                    if !event.is_null() {
                        extras.events.push(event);
                    }
                }
                attribute::IGNORE
                | attribute::ACCESS_POLICY
                | attribute::SYNCHRONIZATION_POLICY
                | attribute::CLUSTER_SCHEDULING
                | attribute::PROGRAMMATIC_SERIALIZATION
                | attribute::PRIORITY
                | attribute::SYNC_DOMAIN_MAP
                | attribute::SYNC_DOMAIN
                | attribute::PREFERRED_CLUSTER
                | attribute::CARVEOUT
                | attribute::NVLINK_SCHEDULING => {}
                unknown => {
                    return Err(Failure::unsupported(format!(
                        "the software GPU does not know the attribute {unknown} of a launch; leave it out"
                    )));
                }
            }
        }
        Ok(extras)
    }
}
