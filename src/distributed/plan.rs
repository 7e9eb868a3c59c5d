//! Plans which bytes go from rank to rank.

use std::fmt;
use std::ops::Range;

use super::{Split, order};
use crate::error::{Result, counted, require};
use crate::layout::{Axes, Layout};
use crate::ops::check_width;

/// The redistribution of an array from one [`Split`] to another, with its axes in another order.
/// Each pair of ranks has one [`Move`] at most: a copy between a box of the one's part and a box of
/// the other's.
///
/// ```
/// use warpstride::distributed::{Redistribution, Split};
///
/// // A transpose: both the source and the result are cut by rows.
/// let source = Split::whole(&[8, 6])?.cut(0, 2)?;
/// let result = Split::whole(&[6, 8])?.cut(0, 2)?;
/// let plan = Redistribution::new(&source, [1, 0], &result, 4)?;
/// let moves: Vec<_> = plan.moves_from(0).iter().map(|part| (part.to, part.bytes)).collect();
/// assert_eq!(moves, [(1, 48), (0, 48)]);
/// assert_eq!(plan.crossing_bytes(), 96); // from rank to rank
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Redistribution {
    from: Split,
    to: Split,
    /// Axis `i` of the result is axis `order[i]` of the source.
    order: Vec<usize>,
    width: usize,
}

/// A copy from a rank's part of the source to a rank's part of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The rank that has the elements.
    pub from: usize,
    /// The rank that gets them.
    pub to: usize,
    /// Its bytes.
    pub bytes: u64,
    /// The elements in the storage of the source's part, with their axes in the result's order.
    pub src: Layout,
    /// The elements in the storage of the result's part.
    pub dst: Layout,
}

impl Redistribution {
    /// Plans it for elements of `width` bytes: axis `i` of the result is axis `axes[i]` of the
    /// source.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `axes` is not a permutation of the source's axes, the width is not 1,
    /// 2, 4, 8 or 16, or the bytes overflow; `Layout` if the result's shape is not the source's in
    /// that order.
    pub fn new(
        from: &Split,
        axes: impl TryInto<Axes, Error: Into<crate::error::Error>>,
        to: &Split,
        width: usize,
    ) -> Result<Self> {
        check_width(width)?;
        let order = axes.try_into().map_err(Into::into)?.of(from.shape())?;
        let shape: Vec<usize> = order.iter().map(|&axis| from.shape()[axis]).collect();
        require!(
            shape == to.shape(),
            Layout,
            "a source of shape {:?} with its axes in the order {order:?} has shape {shape:?}, and the result is split as {:?}; \
             split shape {shape:?}",
            from.shape(),
            to.shape()
        );
        let elements = shape.iter().map(|&extent| extent as u64).product::<u64>();
        require!(
            elements.checked_mul(width as u64).is_some(),
            InvalidArgument,
            "{} of {} overflow; use a smaller array",
            counted(elements, "element"),
            counted(width, "byte")
        );
        Ok(Self { from: from.clone(), to: to.clone(), order, width })
    }

    /// Returns the split of the source.
    pub fn source(&self) -> &Split {
        &self.from
    }

    /// Returns the split of the result.
    pub fn result(&self) -> &Split {
        &self.to
    }

    /// Returns the axes of the source in the order of the result.
    pub fn axes(&self) -> &[usize] {
        &self.order
    }

    /// Returns the bytes of an element.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of ranks that take part.
    pub fn ranks(&self) -> usize {
        self.from.ranks().max(self.to.ranks())
    }

    /// Returns the copies from a rank: to the rank after it first, and to itself last.
    pub fn moves_from(&self, rank: usize) -> Vec<Move> {
        let source = self.from.part(rank).region();
        let wanted: Vec<Range<usize>> = self.order.iter().map(|&axis| source[axis].clone()).collect();
        let mut moves: Vec<Move> = self.to.ranks_in(&wanted).into_iter().map(|to| self.between(rank, to)).collect();
        let ranks = self.ranks();
        moves.sort_by_key(|part| (part.to + ranks - rank - 1) % ranks);
        moves
    }

    /// Returns the copies to a rank: those from the rank before it first, and its own last.
    pub fn moves_to(&self, rank: usize) -> Vec<Move> {
        let result = self.to.part(rank).region();
        let mut wanted = result.clone();
        for (&axis, range) in self.order.iter().zip(result) {
            wanted[axis] = range;
        }
        let mut moves: Vec<Move> =
            self.from.ranks_in(&wanted).into_iter().map(|from| self.between(from, rank)).collect();
        let ranks = self.ranks();
        moves.sort_by_key(|part| (rank + ranks - part.from - 1) % ranks);
        moves
    }

    /// Returns the copy between two ranks whose parts have elements in common.
    fn between(&self, from: usize, to: usize) -> Move {
        let (part, target) = (self.from.part(from), self.to.part(to));
        let mut taken = part.region();
        let meet = |(&axis, b): (&usize, Range<usize>)| taken[axis].start.max(b.start)..taken[axis].end.min(b.end);
        let result: Vec<Range<usize>> = self.order.iter().zip(target.region()).map(meet).collect();
        for (&axis, range) in self.order.iter().zip(&result) {
            taken[axis] = range.clone();
        }
        let dst = target.within(&result);
        let src = part.within(&taken).permuted_axes(&self.order).expect("the order was checked");
        Move { from, to, bytes: (dst.len() * self.width) as u64, src, dst }
    }

    /// Returns the bytes that leave their rank.
    pub fn crossing_bytes(&self) -> u64 {
        (0..self.ranks()).map(|rank| self.ends(rank)[0]).sum()
    }

    /// Returns the most bytes that a rank sends to others or gets from others, the bound of the
    /// whole where every rank has one link.
    pub fn busiest_bytes(&self) -> u64 {
        (0..self.ranks()).flat_map(|rank| self.ends(rank)).max().unwrap_or(0)
    }

    /// Returns the bytes that a rank sends to others and gets from others: all but those that it
    /// keeps.
    fn ends(&self, rank: usize) -> [u64; 2] {
        let (source, result) = (self.from.part(rank), self.to.part(rank));
        let (from, to) = (source.region(), result.region());
        let common = |(&axis, to): (&usize, &Range<usize>)| {
            to.end.min(from[axis].end).saturating_sub(to.start.max(from[axis].start))
        };
        let kept: usize = self.order.iter().zip(&to).map(common).product();
        [source, result].map(|part| (part.len() - kept) as u64 * self.width as u64)
    }
}

/// Most ranks whose copies are printed one by one.
const PRINTED: usize = 8;

/// The splits, and each copy with its bytes. Those of 8 ranks or fewer stand in the order in which
/// the ranks of a host make them.
impl fmt::Display for Redistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, order, width, .. } = self;
        writeln!(f, "{from} to {to}, axes {order:?}, {}", format_args!("elements of {}", counted(width, "byte")))?;
        let (all, ranks) = (self.crossing_bytes(), self.ranks());
        write!(f, "{} from rank to rank, at most {} of one rank", counted(all, "byte"), self.busiest_bytes())?;
        let printed = if ranks > PRINTED {
            (0..PRINTED).map(|rank| self.moves_from(rank)).collect()
        } else {
            order::of_host(self)
        };
        for (rank, moves) in printed.into_iter().enumerate() {
            let told =
                |Move { to, bytes, .. }: Move| format!("{bytes} to {to}{}", if to == rank { " (itself)" } else { "" });
            let moves: Vec<String> = moves.into_iter().map(told).collect();
            write!(f, "\n  rank {rank}: {}", moves.join(", "))?;
        }
        if ranks > PRINTED {
            write!(f, "\n  and {} more", counted(ranks - PRINTED, "rank"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
