//! `src/context`: the count of a buffer's handles, and the order of the uses of its memory.

#[allow(dead_code, reason = "no model adds memory to a graph")]
#[path = "../../../src/context/joint.rs"]
mod joint;
#[allow(dead_code, reason = "no model asks for the stream alone")]
#[path = "../../../src/context/last_use.rs"]
mod last_use;
#[path = "../../../src/context/shared.rs"]
mod shared;

pub(crate) mod joint_models;
pub(crate) mod shared_models;

pub(crate) use self::shared::Shared;

use self::last_use::LastUse;
use crate::stream::{Capturing, Event, Stream};

/// Stands for `context::home`, from which `last_use` imports.
mod home {
    use crate::stream::Stream;

    #[derive(Debug)]
    pub(super) struct Home(pub(super) Stream);

    impl Home {
        pub(super) fn stream(&self) -> &Stream {
            &self.0
        }
    }
}

/// A block of memory that does not exist. Its drop is a use by the stream that the last use names,
/// as that of the crate's is: the block's next use comes after the work there, and waits for no
/// other.
pub(crate) struct Allocation {
    last_use: LastUse,
    number: u32,
}

impl Allocation {
    fn last_use(&self) -> &LastUse {
        &self.last_use
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let (_, last) = self.last_use.last();
        last.work(&[self.number]);
    }
}
