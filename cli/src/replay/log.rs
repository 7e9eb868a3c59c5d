//! Allocations and frees in the order in which a program made them.

/// An allocation or a free. Blocks are named by slots, numbers that are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Allocates `bytes` bytes, at least 1, into an empty slot.
    Alloc {
        /// The block's slot.
        slot: u32,
        /// At least 1.
        bytes: u64,
        /// The stream that it is for, from 0.
        stream: u32,
    },
    /// Frees the block of a slot.
    Free {
        /// The block's slot.
        slot: u32,
        /// The stream that used it last, from 0.
        stream: u32,
    },
}

/// The allocations and frees of a program, each block allocated before it is freed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Log {
    operations: Vec<Operation>,
    slots: u32,
    streams: u32,
    empty: Vec<u32>,
}

impl Log {
    /// Returns the operations in order.
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the number of streams.
    pub(crate) fn streams(&self) -> u32 {
        self.streams
    }

    /// Adds an allocation, and returns its slot.
    pub(super) fn alloc(&mut self, bytes: u64, stream: u32) -> u32 {
        let slot = self.empty.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.streams = self.streams.max(stream + 1);
        self.operations.push(Operation::Alloc { slot, bytes, stream });
        slot
    }

    /// Adds the free of a slot that has a block.
    pub(super) fn free(&mut self, slot: u32, stream: u32) {
        self.empty.push(slot);
        self.streams = self.streams.max(stream + 1);
        self.operations.push(Operation::Free { slot, stream });
    }

    /// Returns where the most bytes are in use for the first time, and how many.
    pub(crate) fn peak(&self) -> (usize, u64) {
        let mut held = vec![0; self.slots as usize];
        let (mut active, mut peak) = (0, (0, 0));
        for (at, operation) in self.operations.iter().enumerate() {
            match *operation {
                Operation::Alloc { slot, bytes, .. } => {
                    held[slot as usize] = bytes;
                    active += bytes;
                }
                Operation::Free { slot, .. } => active -= held[slot as usize],
            }
            if active > peak.1 {
                peak = (at, active);
            }
        }
        peak
    }
}
