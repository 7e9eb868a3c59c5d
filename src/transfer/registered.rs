//! Host memory that a scope page-locks.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::driver::{Copy3d, Driver, PAGE, Pitched, Place};
use crate::error::Result;

/// Most bytes that one call page-locks: CUDA's driver refuses half a TiB. Pieces end with a page,
/// so no two share one. An H100's driver (580) refuses a copy that crosses from one to another.
pub(super) const PIECE: usize = 64 << 30;

/// Host memory that a [`Scope`](super::Scope) has page-locked until its end: a mutable slice of
/// the scope's lifetime.
///
/// Copies take it as they take slices, and run as fast as from pinned memory.
/// [`Registered::into_slice`] returns the slice, to copy parts of it.
#[derive(Debug)]
pub struct Registered<'scope, T>(pub(super) &'scope mut [T]);

impl<'scope, T> Registered<'scope, T> {
    /// Returns the slice, which stays page-locked until the end of the scope.
    pub fn into_slice(self) -> &'scope mut [T] {
        self.0
    }
}

impl<T> Deref for Registered<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<T> DerefMut for Registered<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0
    }
}

/// The pieces that a scope has page-locked. Dropping them unlocks what is left.
pub(super) struct Pieces<'d> {
    driver: &'d dyn Driver,
    /// The first byte of each piece, and its number of bytes.
    locked: RefCell<Vec<(NonNull<u8>, usize)>>,
    piece: usize,
}

impl<'d> Pieces<'d> {
    pub(super) fn new(driver: &'d dyn Driver, piece: usize) -> Self {
        Self { driver, locked: RefCell::default(), piece }
    }

    /// Page-locks memory piece by piece. What was locked before a failure is unlocked with the
    /// rest.
    ///
    /// # Safety
    ///
    /// - `memory .. memory + bytes` lies within one live allocation until `self` has unlocked it.
    pub(super) unsafe fn lock(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let (first, end) = (memory.addr().get(), memory.addr().get() + bytes);
        let mut start = first;
        while start < end {
            let next = (start.saturating_add(self.piece) / PAGE * PAGE).min(end);
            // SAFETY: `start - first` is less than `bytes`, of one allocation.
            let piece = unsafe { memory.byte_add(start - first) };
            // SAFETY: the piece lies within the caller's memory.
            unsafe { self.driver.register_host(piece, next - start) }?;
            self.locked.borrow_mut().push((piece, next - start));
            start = next;
        }
        Ok(())
    }

    /// Unlocks all pieces, even after a failure, and returns the first failure. All copies have
    /// run, as the scope waited.
    pub(super) fn unlock(&self) -> Result<()> {
        let mut outcome = Ok(());
        loop {
            let Some((memory, _)) = self.locked.borrow_mut().pop() else { return outcome };
            // SAFETY: `lock` registered memory that begins here, once; no work uses it from now
            // on, since the scope has waited for its copies and makes no more.
            outcome = outcome.and(unsafe { self.driver.unregister_host(memory) });
        }
    }

    /// Calls `each` with the parts of a copy, of which no host side crosses an end of a piece: a
    /// call of the driver may neither cross from one piece to another nor from locked memory to
    /// pageable memory beside it.
    pub(super) fn split(&self, copy: &Copy3d, each: &mut dyn FnMut(&Copy3d) -> Result<()>) -> Result<()> {
        let host = match (copy.dst.place, copy.src.place) {
            (Place::Host(memory), _) => (memory, &copy.dst),
            (_, Place::Host(memory)) => (memory, &copy.src),
            _ => return each(copy),
        };
        let Some(at) = self.boundary(host.0.addr(), host.1, copy) else { return each(copy) };
        let cut = |extent: usize| extent / 2;
        let (first, second) = if copy.depth > 1 {
            parts(copy, [copy.width, copy.height, cut(copy.depth)], |side| cut(copy.depth) * side.slice_pitch)
        } else if copy.height > 1 {
            parts(copy, [copy.width, cut(copy.height), 1], |side| cut(copy.height) * side.row_pitch)
        } else {
            parts(copy, [at - host.0.addr(), 1, 1], |_| at - host.0.addr())
        };
        self.split(&first, each)?;
        self.split(&second, each)
    }

    /// Returns the first address within the host side of a copy at which a piece begins or ends. A
    /// driver that locks whole pages sees the piece from page to page, so those are ends too.
    fn boundary(&self, start: usize, side: &Pitched, copy: &Copy3d) -> Option<usize> {
        let end = start + (copy.depth - 1) * side.slice_pitch + (copy.height - 1) * side.row_pitch + copy.width;
        let locked = self.locked.borrow();
        let ends = locked.iter().flat_map(|&(memory, bytes)| {
            let (first, behind) = (memory.addr().get(), memory.addr().get() + bytes);
            [first / PAGE * PAGE, first, behind, behind.next_multiple_of(PAGE)]
        });
        ends.filter(|&at| start < at && at < end).min()
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        // Only a panic leaves pieces here, which is the failure that the caller sees.
        let _ = self.unlock();
    }
}

/// Cuts a copy in two: the first part has these extents, the second begins `offset` bytes later on
/// each side and has the rest.
fn parts(copy: &Copy3d, [width, height, depth]: [usize; 3], offset: impl Fn(&Pitched) -> usize) -> (Copy3d, Copy3d) {
    let first = Copy3d { width, height, depth, ..*copy };
    let rest = |whole: usize, part: usize| if part == whole { whole } else { whole - part };
    let moved = |side: &Pitched| Pitched { place: moved(side.place, offset(side)), ..*side };
    let second = Copy3d {
        dst: moved(&copy.dst),
        src: moved(&copy.src),
        width: rest(copy.width, width),
        height: rest(copy.height, height),
        depth: rest(copy.depth, depth),
    };
    (first, second)
}

/// Returns the place some bytes later.
pub(super) fn moved(place: Place, bytes: usize) -> Place {
    match place {
        Place::Device(address) => Place::Device(address + bytes as u64),
        Place::Host(memory) => Place::Host(memory.wrapping_add(bytes)),
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::driver::soft::Soft;

    const ROOM: usize = 10 * PAGE;

    /// Returns the bytes of the host side, in the order of rows.
    fn bytes(copy: &Copy3d) -> Vec<usize> {
        let Place::Host(memory) = copy.src.place else { panic!("the source is the host's") };
        let rows = (0..copy.depth).flat_map(|slice| (0..copy.height).map(move |row| (slice, row)));
        let starts = rows.map(|(slice, row)| memory.addr() + slice * copy.src.slice_pitch + row * copy.src.row_pitch);
        starts.flat_map(|start| start..start + copy.width).collect()
    }

    proptest! {
        #[test]
        fn parts_are_the_copy_and_cross_no_end_of_a_piece(
            (first, len) in (0..PAGE, 0..8 * PAGE),
            start in 0..PAGE,
            width in 1..700_usize,
            height in 1..4_usize,
            depth in 1..4_usize,
            gaps in [0..300_usize, 0..2000],
        ) {
            let driver = Soft::with_config(Default::default());
            let mut room = vec![0_u8; ROOM];
            let locked_from = NonNull::from(&mut room[first..]).cast();
            let base = NonNull::from(room.as_mut_slice()).cast::<u8>();
            let pieces = Pieces::new(&driver, PAGE);
            // SAFETY: the bytes lie within the room, which outlives the pieces.
            unsafe { pieces.lock(locked_from, len) }.unwrap();
            let row_pitch = width + gaps[0];
            let slice_pitch = height * row_pitch + gaps[1];
            let place = Place::Host(base.as_ptr().wrapping_add(start));
            let dst = Pitched { place: Place::Device(0), row_pitch, slice_pitch };
            let copy = Copy3d { dst, src: Pitched { place, ..dst }, width, height, depth };
            let mut parts = Vec::new();
            pieces.split(&copy, &mut |part| { parts.push(*part); Ok(()) }).unwrap();
            let mut found: Vec<usize> = parts.iter().flat_map(bytes).collect();
            found.sort_unstable();
            prop_assert_eq!(found, bytes(&copy));
            let locked: Vec<usize> = (first..first + len).map(|at| base.addr().get() + at).collect();
            for part in &parts {
                let Place::Device(device) = part.dst.place else { panic!("the target is the device's") };
                let host = bytes(part);
                prop_assert_eq!(host[0] - base.addr().get(), start + device as usize, "both sides move alike");
                let (low, high) = (host[0], host[host.len() - 1]);
                let is_locked = |at: usize| locked.binary_search(&at).is_ok();
                prop_assert!(!is_locked(low) || low / PAGE == high / PAGE, "it crosses from one piece to another");
                prop_assert_eq!(is_locked(low), is_locked(high), "it crosses an end");
            }
        }
    }
}
