//! The 64 bits of an mbarrier, which counts arrivals of threads and of bytes.
//!
//! PTX leaves the bits open. Here the lowest one is the parity of the phase; then come the arrivals
//! that are pending, those that each phase expects, and the bytes that are under way.

/// The bits of a count of arrivals: PTX has counts up to 2^20 - 1.
const COUNT_BITS: u32 = 20;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const PENDING_AT: u32 = 1;
const EXPECTED_AT: u32 = PENDING_AT + COUNT_BITS;
const BYTES_AT: u32 = EXPECTED_AT + COUNT_BITS;

/// The greatest count of arrivals.
pub(crate) const MOST: u64 = COUNT;

#[derive(Clone, Copy)]
struct State {
    phase: u64,
    pending: u64,
    expected: u64,
    /// It may be negative for a time: bytes may come before a thread has announced them.
    bytes: i64,
}

impl State {
    fn of(bits: u64) -> Self {
        Self {
            phase: bits & 1,
            pending: bits >> PENDING_AT & COUNT,
            expected: bits >> EXPECTED_AT & COUNT,
            bytes: bits as i64 >> BYTES_AT,
        }
    }

    /// Returns the bits, after the phase has ended if nothing is pending.
    fn bits(mut self) -> u64 {
        if self.pending == 0 && self.bytes == 0 {
            (self.phase, self.pending) = (self.phase ^ 1, self.expected);
        }
        self.phase | self.pending << PENDING_AT | self.expected << EXPECTED_AT | (self.bytes as u64) << BYTES_AT
    }
}

/// The first phase of a barrier that expects so many arrivals.
pub(crate) fn initial(count: u64) -> u64 {
    (count & COUNT) << PENDING_AT | (count & COUNT) << EXPECTED_AT
}

/// `count` threads arrive, and so many more bytes are under way.
pub(crate) fn arrive(bits: u64, count: u64, bytes: u64) -> u64 {
    let state = State::of(bits);
    let pending = state.pending.saturating_sub(count);
    State { pending, bytes: state.bytes.wrapping_add(bytes as i64), ..state }.bits()
}

/// `count` threads arrive, and no later phase expects them.
pub(crate) fn drop_out(bits: u64, count: u64, bytes: u64) -> u64 {
    let state = State::of(bits);
    let expected = state.expected.saturating_sub(count);
    let pending = state.pending.saturating_sub(count);
    State { pending, expected, bytes: state.bytes.wrapping_add(bytes as i64), ..state }.bits()
}

/// Returns whether a barrier has left the phase of this state, or of this parity.
pub(crate) fn has_left(now: u64, phase: u64) -> bool {
    (now ^ phase) & 1 == 1
}

/// The arrivals that a state was waiting for.
pub(crate) fn pending(bits: u64) -> u32 {
    State::of(bits).pending as u32
}

#[cfg(test)]
mod tests;
