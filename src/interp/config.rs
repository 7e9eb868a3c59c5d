//! How a launch is run, and how long it may take.

use super::check::Checks;

/// Work that a launch may do unless told otherwise: [`Config::work_limit`].
///
/// The unit is a simple instruction of a warp, some 10 ns of one host thread where this crate is optimised; in a build without
/// optimisation it takes 20 to 60 times as long. What takes longer counts for more, in proportion: a function such as a sine
/// is many units, and so are a barrier, for each warp that passes it, an access that checkers look at, something that they
/// find, a byte that is printed, a call, by what it copies, and the beginning of a block, by the memory that it clears. So
/// the limit is the same time, about, whatever a kernel does: a dozen seconds, and twice that at most, for a block that
/// begins within the limit may do as much alone.
pub const DEFAULT_WORK: u64 = 1 << 30;

/// How a launch is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Host threads, at most those there are; 0 for all. Results and counters do not depend on it where blocks do not
    /// communicate through global memory.
    pub threads: usize,
    /// Work after which a launch is taken for one whose end nobody waits for: see [`DEFAULT_WORK`]. Blocks count in their
    /// order, so where it stops does not depend on the host threads; a grid that cannot fit is refused before it begins.
    pub work_limit: u64,
    /// Most blocks that run. Of a larger grid so many are taken, spread over it, and counted alone: enough to know what a launch
    /// asks of memory whose results nobody reads.
    pub most_blocks: u64,
    /// What is looked for. With checkers a launch runs on one host thread, some times slower.
    /// Racecheck takes 16 to 32 bytes and more for each place that is accessed, which is as wide as
    /// the narrowest access of the kernel.
    pub checks: Checks,
}

impl Default for Config {
    fn default() -> Self {
        Self { threads: 0, work_limit: DEFAULT_WORK, most_blocks: u64::MAX, checks: Checks::NONE }
    }
}
