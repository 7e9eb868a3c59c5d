//! Cuts a copy between two ranks into pieces that travel one after the other.

use std::ops::Range;

use crate::distributed::Move;
use crate::layout::Layout;

/// A piece of a copy. Its bytes lie side by side while they travel, in the order of its axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::distributed) struct Piece {
    pub(in crate::distributed) bytes: u64,
    /// The number of the step in which it travels, from 0.
    pub(in crate::distributed) step: usize,
    /// The elements in the storage of the source's part.
    pub(in crate::distributed) src: Layout,
    /// The elements in the storage of the result's part.
    pub(in crate::distributed) dst: Layout,
}

impl Piece {
    /// Returns whether the elements are copied side by side before they are sent.
    pub(in crate::distributed) fn is_packed(&self) -> bool {
        !self.src.is_standard_layout()
    }

    /// Returns the elements within a range of an axis.
    fn slice(&self, axis: usize, range: Range<usize>, width: u64) -> Self {
        let slice = |layout: Layout| layout.slice(axis, range.clone(), 1).expect("the range lies within the axis");
        let (src, dst) = (slice(self.src), slice(self.dst));
        Self { bytes: src.len() as u64 * width, src, dst, ..*self }
    }

    /// Returns whether the elements are copied to their places after they have arrived.
    pub(in crate::distributed) fn is_unpacked(&self) -> bool {
        !self.dst.is_standard_layout()
    }
}

/// The most bytes of a message that is neither packed nor unpacked. Larger ones are a known source
/// of trouble in libraries that count in 32 bits.
const LARGEST: u64 = 448 << 20;

/// The sizes of pieces that are packed or sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::distributed) enum Sizes {
    /// At most so many bytes, or one element.
    Most(u64),
    /// Small ones first and last, and large ones between: see [`growing`]. So many peers get pieces
    /// at once.
    Growing {
        /// Their number.
        peers: u64,
    },
}

/// A copy is cut only where so many bytes travel at once, all peers together: in pieces of 32 MiB,
/// NCCL was slow on an H200 (`benches/record/2026-11-28-h200/nccl.md`).
const LEAST: u64 = 32 << 20;
/// The most bytes that travel at once, all peers together, so that the buffers stay small.
const MOST: u64 = 1 << 30;
/// Each piece is so many times as large as the one before it, and behind the middle as the one
/// after it. On an H200 a growth by 8 was 1 % faster, and needs buffers that are larger.
const GROWTH: u64 = 4;

/// Returns the parts of the pieces of a copy of `bytes` bytes. The first piece is packed before
/// anything travels, and the last one is sorted when nothing travels any more, so these are small.
/// In between, a piece is packed while the one before it travels.
fn growing(bytes: u64, peers: u64) -> Vec<u64> {
    let mut parts = vec![1];
    loop {
        let top = parts[parts.len() / 2] * GROWTH;
        let mut more = parts[..=parts.len() / 2].to_vec();
        let down: Vec<u64> = more.iter().rev().copied().collect();
        more.push(top);
        more.extend(down);
        let all = bytes.saturating_mul(peers);
        if all / more.iter().sum::<u64>() < LEAST {
            return divided(parts, all);
        }
        parts = more;
    }
}

/// Divides the part in the middle where it has too many bytes of `all`.
fn divided(mut parts: Vec<u64>, all: u64) -> Vec<u64> {
    let middle = parts.len() / 2;
    let largest = u128::from(all) * u128::from(parts[middle]) / u128::from(parts.iter().sum::<u64>());
    let pieces = largest.div_ceil(u128::from(MOST)).clamp(1, MANY) as u64;
    let of_one = parts[middle];
    parts.iter_mut().for_each(|part| *part *= pieces);
    parts.splice(middle..=middle, (0..pieces).map(|_| of_one));
    parts
}

/// The most pieces of the middle, beyond what a GPU has memory for.
const MANY: u128 = 1 << 12;

/// Cuts a copy into pieces. `order` has the axes of the source in the order of the result. Both
/// ranks of the copy make the same pieces.
///
/// The elements travel in the order of the result, and the source's rank packs them so, unless they
/// lie side by side in the source and not in the result: then the result's rank sorts them.
pub(in crate::distributed) fn pieces(of: &Move, order: &[usize], width: usize, sizes: Sizes) -> Vec<Piece> {
    let (whole, width) = (travelling(of, order), width as u64);
    let mut pieces = Vec::new();
    match sizes {
        _ if !whole.is_packed() && !whole.is_unpacked() => cut(whole, 0, width, LARGEST, &mut pieces),
        Sizes::Most(bytes) => pieces = in_steps(whole, width, bytes),
        Sizes::Growing { peers } => {
            let parts = growing(whole.bytes, peers);
            cut_in_parts(&whole, width, &parts).into_iter().for_each(|part| cut(part, 0, width, LARGEST, &mut pieces));
        }
    }
    pieces
}

/// The bytes that kernels store into windows between two meetings of the ranks, all peers together.
/// A piece costs about 10 us beside its bytes (`benches/record/2026-11-28-h200/windows.md`), and
/// the last one is sorted when nothing is pushed any more.
const BETWEEN_MEETINGS: [u64; 2] = [64 << 20, 128 << 20];

/// Cuts a copy into pieces of about one size for windows: of at most so many bytes each, where that
/// is given, and else as large as suits so many peers.
pub(super) fn even(of: &Move, order: &[usize], width: usize, (most, peers): (Option<u64>, u64)) -> Vec<Piece> {
    let [least, largest] = BETWEEN_MEETINGS;
    let suitable = || (of.bytes.saturating_mul(peers) / 4).clamp(least, largest) / peers;
    in_steps(travelling(of, order), width as u64, most.unwrap_or_else(suitable))
}

/// Returns the whole copy in the order in which its elements travel.
fn travelling(of: &Move, order: &[usize]) -> Piece {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| inverse[axis] = at);
    let in_source = [of.src, of.dst].map(|layout| layout.permuted_axes(&inverse).expect("the order was checked"));
    let travels_as_source = in_source[0].is_standard_layout() && !of.dst.is_standard_layout();
    let [src, dst] = if travels_as_source { in_source } else { [of.src, of.dst] };
    Piece { bytes: of.bytes, step: 0, src, dst }
}

/// Cuts a copy into pieces of at most so many bytes, or of one element, of which one travels after
/// the other.
fn in_steps(whole: Piece, width: u64, most: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    cut(whole, 0, width, most, &mut pieces);
    pieces.iter_mut().enumerate().for_each(|(number, piece)| piece.step = number);
    pieces
}

/// Returns the multiple at which pieces of about so many indices begin: so rows of the other side
/// that are cut between elements begin at whole sectors.
fn boundary(indices: usize) -> usize {
    if indices < 256 { 1 } else { 64 }
}

/// Cuts a piece along its first axis of several indices, into parts of these proportions, as far as
/// there are indices.
fn cut_in_parts(whole: &Piece, width: u64, parts: &[u64]) -> Vec<Piece> {
    let shape = whole.src.shape();
    let axis = shape.iter().position(|&extent| extent > 1).unwrap_or(0);
    let (all, extent) = (parts.iter().sum::<u64>() as u128, shape.get(axis).copied().unwrap_or(1));
    let (mut pieces, mut begun, mut start) = (Vec::new(), 0_u128, 0);
    for part in parts {
        begun += u128::from(*part);
        let end = match (extent as u128 * begun / all) as usize {
            end if end == extent => end,
            end => end - end % boundary(extent / parts.len()),
        };
        if end > start {
            pieces.push(Piece { step: pieces.len(), ..whole.slice(axis, start..end, width) });
            start = end;
        }
    }
    pieces
}

/// Cuts a piece along its slowest axis, and what is too large still along the next ones: so pieces
/// of elements that lie side by side do, too.
fn cut(piece: Piece, axis: usize, width: u64, limit: u64, pieces: &mut Vec<Piece>) {
    let Some(&extent) = piece.src.shape().get(axis).filter(|_| piece.bytes > limit) else {
        pieces.push(piece);
        return;
    };
    let of_one = piece.bytes / extent as u64;
    let step = (limit / of_one.max(1)).clamp(1, extent as u64) as usize;
    let step = step - step % boundary(step);
    for start in (0..extent).step_by(step) {
        let part = piece.slice(axis, start..(start + step).min(extent), width);
        cut(part, axis + 1, width, limit, pieces);
    }
}

#[cfg(test)]
mod tests;
