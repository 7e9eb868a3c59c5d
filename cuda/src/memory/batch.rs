//! Many copies in one call.

use std::ffi::c_uint;

use super::copy::{Extent, Operand, Timing, Wanted, copy};
use super::managed::Location;
use crate::arguments::{Handle, In, Out};
use crate::code::{Failure, Outcome};
use crate::export::{export, is_per_thread};
use crate::stream::{Stream, stream};

/// When a copy may read its source: in the order of the stream, during the call, or at any time.
const IN_ORDER: c_uint = 1;
const DURING_CALL: c_uint = 2;
const AT_ANY_TIME: c_uint = 3;

/// The way of some copies of a batch, as in `CUmemcpyAttributes`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Attributes {
    order: c_uint,
    _src: Location,
    _dst: Location,
    _flags: c_uint,
}

/// The operands of a batch.
struct Batch {
    dsts: In<u64>,
    srcs: In<u64>,
    sizes: In<usize>,
    count: usize,
    attributes: In<Attributes>,
    first_of: In<usize>,
    kinds: usize,
}

impl Batch {
    fn queue(self, on: Handle<Stream>) -> Outcome {
        let (dsts, srcs, sizes) =
            (self.dsts.list(self.count)?, self.srcs.list(self.count)?, self.sizes.list(self.count)?);
        let (attributes, first_of) = (self.attributes.list(self.kinds)?, self.first_of.list(self.kinds)?);
        let is_ordered = first_of.first() == Some(&0) && first_of.is_sorted_by(|before, after| before < after);
        if self.count == 0 || !is_ordered || first_of.last().is_some_and(|&last| last >= self.count) {
            return Err(Failure::value(format!(
                "a batch of {} copies does not have {} attributes in such an order; the first one is for copy 0",
                self.count, self.kinds
            )));
        }
        if on.is_null() && !is_per_thread() {
            return Err(Failure::value("a batch of copies needs a stream that is not the default one"));
        }
        let timings: Vec<Timing> = attributes.iter().map(timing).collect::<Outcome<_>>()?;
        if sizes.contains(&0) {
            return Err(Failure::value("a copy of a batch has 0 bytes"));
        }
        let stream = stream(on)?;
        for (number, ((dst, src), size)) in dsts.into_iter().zip(srcs).zip(sizes).enumerate() {
            let kind = first_of.partition_point(|&first| first <= number) - 1;
            let extent = Extent { width: size, height: 1, depth: 1 };
            copy(Operand::row(dst, Wanted::Any), Operand::row(src, Wanted::Any), extent, &stream, timings[kind])?;
        }
        Ok(())
    }
}

fn timing(attributes: &Attributes) -> Outcome<Timing> {
    match attributes.order {
        IN_ORDER | AT_ANY_TIME => Ok(Timing::ReadInOrder),
        DURING_CALL => Ok(Timing::ReadAtOnce),
        other => Err(Failure::value(format!("{other} is not an order in which copies read their sources"))),
    }
}

export! {
    /// Queues many copies.
    fn cuMemcpyBatchAsync, per_thread cuMemcpyBatchAsync_ptsz (
        dsts: In<u64>, srcs: In<u64>, sizes: In<usize>, count: usize, attributes: In<Attributes>, first_of: In<usize>,
        kinds: usize, failed: Out<usize>, on: Handle<Stream>,
    ) {
        // The failure does not belong to one copy, which this number says.
        failed.set_if_wanted(usize::MAX);
        Batch { dsts, srcs, sizes, count, attributes, first_of, kinds }.queue(on)
    }

    /// Queues many copies.
    fn cuMemcpyBatchAsync_v2, per_thread cuMemcpyBatchAsync_v2_ptsz (
        dsts: In<u64>, srcs: In<u64>, sizes: In<usize>, count: usize, attributes: In<Attributes>, first_of: In<usize>,
        kinds: usize, on: Handle<Stream>,
    ) {
        Batch { dsts, srcs, sizes, count, attributes, first_of, kinds }.queue(on)
    }
}
