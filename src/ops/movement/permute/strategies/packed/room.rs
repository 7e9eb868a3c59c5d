//! Places a tile in shared memory so that lanes share no bank.

use super::growth::Packing;
use crate::layout::MAX_RANK;
use crate::ops::units::BANK_ROW;

/// The strides of a tile's axes in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes from one index to the next of each axis.
    pub(super) strides: [usize; MAX_RANK],
    /// Bytes of the whole tile.
    pub(super) bytes: usize,
    /// The number of axes whose stride is not the wanted one.
    pub(super) unmet: usize,
}

impl Packing {
    /// Returns the strides in shared memory, in the source's order: as short as words allow, or
    /// with `step` words, modulo the banks, between elements that follow each other in the
    /// destination.
    pub(super) fn room(&self, aligned: bool, step: Option<usize>, spread_part: usize) -> Room {
        let wanted = step.map(|step| self.wanted(step));
        let (mut strides, mut bytes, mut unmet) = ([0; MAX_RANK], self.width, 0);
        let inner = &self.src.axes[..self.src.inner];
        for (place, axis) in inner.iter().copied().chain(self.outer(&self.src)).enumerate() {
            let outside = place >= self.src.inner;
            let in_word = self.word - 1;
            let natural = (self.axes[axis].src as usize).wrapping_mul(self.width) & in_word;
            let stride = if !outside && (!aligned || bytes & in_word != 0) {
                bytes
            } else {
                // The end of a run and the start of the next must not share a word.
                let least = if outside && !aligned { bytes + self.word - 1 } else { bytes };
                let class = |power: usize, class: usize| least + (class.wrapping_sub(least) & (power - 1));
                let wanted = wanted.map_or(0, |wanted| wanted[axis]);
                let spread = class(BANK_ROW, wanted);
                // A wanted stride that costs too much memory gains little.
                let is_met = wanted > 0 && wanted & in_word == natural && spread <= least + least / spread_part;
                unmet += usize::from(wanted > 0 && !is_met);
                // If elements move alone, no stride has to agree with the source's. An odd one
                // spreads the lanes that gather.
                let odd = if outside && self.gap != 1 && axis == self.dst.axes[0] { self.width } else { 0 };
                if is_met { spread } else { class(self.word, natural) | odd }
            };
            strides[axis] = stride;
            bytes = stride * self.taken[axis];
        }
        Room { strides, bytes, unmet }
    }

    /// Returns the stride in bytes, modulo the banks, that each axis of the destination's run
    /// wants, or 0 for any.
    fn wanted(&self, step: usize) -> [usize; MAX_RANK] {
        let mut wanted = [0; MAX_RANK];
        let first = self.dst.axes[0];
        let (mut stride, mut covered) = (step * self.word, 1);
        if self.src.axes[0] == first {
            stride = self.width;
        }
        let inner = self.dst.axes[..self.dst.inner].iter().copied();
        for axis in inner.chain(self.outer(&self.dst)) {
            // 0 stands for any stride, so a wanted 0 becomes a whole round of the banks.
            wanted[axis] = stride % BANK_ROW + BANK_ROW;
            stride = stride * self.taken[axis] % BANK_ROW;
            covered *= self.taken[axis];
            if covered * self.width >= BANK_ROW {
                break;
            }
        }
        wanted
    }

    /// Counts the extra rounds that the lanes of a warp need for their first words of the
    /// destination, beyond one each.
    pub(super) fn conflicts(&self, words: &[u16; BANK_ROW], turn: usize) -> usize {
        // All of these are powers of two.
        let (banks, lanes) = (BANK_ROW / self.word, self.word / self.width);
        let turn_log2 = (8 * self.width).trailing_zeros();
        let mut conflicts = 0;
        for step in 0..lanes {
            let (mut first, mut rounds) = ([u16::MAX; BANK_ROW / 4], [0u8; BANK_ROW / 4]);
            for lane in 0..banks {
                let turned = (lane & turn) >> turn_log2;
                let word = words[lane * lanes + ((step + turned) & (lanes - 1))];
                let bank = usize::from(word) & (banks - 1);
                if first[bank] == u16::MAX {
                    first[bank] = word;
                } else if first[bank] != word {
                    rounds[bank] += 1;
                }
            }
            conflicts += usize::from(rounds.into_iter().max().unwrap_or_default());
        }
        conflicts
    }

    /// Returns the words of shared memory that hold the first elements of the destination.
    pub(super) fn words(&self, room: &Room) -> [u16; BANK_ROW] {
        let mut walks = [(0, 0); MAX_RANK];
        let order = self.dst.axes[..self.dst.inner].iter().copied().chain(self.outer(&self.dst));
        let rank = order.zip(&mut walks).map(|(axis, to)| *to = (room.strides[axis], self.taken[axis])).count();
        let (mut words, mut digits, mut place) = ([0; BANK_ROW], [0; MAX_RANK], 0);
        for to in &mut words {
            *to = (place >> self.word.trailing_zeros()) as u16;
            for (digit, (stride, taken)) in digits.iter_mut().zip(&walks[..rank]) {
                (*digit, place) = (*digit + 1, place + stride);
                if *digit < *taken {
                    break;
                }
                (*digit, place) = (0, place - stride * taken);
            }
        }
        words
    }

    /// Returns the strides in shared memory with the fewest bank conflicts, among those the ones
    /// that take the least memory, and the mask of lanes that start at a later word.
    pub(super) fn arrangement(&self, [src_aligned, dst_aligned]: [bool; 2], spread_part: usize) -> (Room, usize) {
        let turn = if self.width < 4 && dst_aligned { 32 - 8 * self.width } else { 0 };
        let best_turn = |room: Room| {
            let words = self.words(&room);
            let straight = self.conflicts(&words, 0);
            let turned = if turn == 0 || straight == 0 { straight } else { self.conflicts(&words, turn) };
            if turned < straight { (turned, room, turn) } else { (straight, room, 0) }
        };
        let natural = best_turn(self.room(src_aligned, None, spread_part));
        if natural.0 == 0 {
            return (natural.1, natural.2);
        }
        let stepped = (1..BANK_ROW / self.word).step_by(2).map(|step| self.room(src_aligned, Some(step), spread_part));
        let stepped = stepped.min_by_key(|room| (room.unmet, room.bytes)).map_or(natural, best_turn);
        let (_, room, turn) = if stepped.0 < natural.0 { stepped } else { natural };
        (room, turn)
    }
}
