//! How a launch runs, and how much work it may do.

use super::check::Checks;

/// The default work limit of a launch: [`Config::work_limit`].
///
/// The unit is one simple instruction of a warp. It takes about 10 ns of one host thread if this
/// crate is optimised, and many times as long if it is not. Slower steps count in proportion to
/// their time: a function such as a sine takes many units. So do a barrier (for each warp that
/// passes it), an access that checkers inspect, a finding, a printed byte, a call (by the bytes it
/// copies), and the start of a block (by the memory it clears). The limit is therefore about the
/// same time for any kernel: a dozen seconds. It is at most twice that, because a block that begins
/// within the limit may do the same amount alone.
pub const DEFAULT_WORK: u64 = 1 << 30;

/// Settings of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Host threads to use, at most the number available; 0 means all. Results and counters do not
    /// depend on it unless blocks communicate through global memory.
    pub threads: usize,
    /// The work after which a launch is stopped as endless: see [`DEFAULT_WORK`]. Blocks count in
    /// their order, so the point where it stops does not depend on the number of host threads. A
    /// grid that cannot fit within the limit is refused before it begins.
    pub work_limit: u64,
    /// The largest number of blocks that run. From a larger grid, this number of blocks is
    /// selected, spread over the grid, and only they are counted. That is enough to measure what a
    /// launch asks of memory if its results are not read.
    pub most_blocks: u64,
    /// The checkers to use. With checkers, a launch runs on one host thread and several times
    /// slower. Racecheck takes at least 16 to 32 bytes for each place that is accessed; a place is
    /// as wide as the narrowest access of the kernel.
    pub checks: Checks,
    /// True for a cooperative launch, whose blocks all run beside each other: `%envreg1` and
    /// `%envreg2` have the address of zeroed memory at which the grid can meet, as cooperative
    /// groups do. In other launches they are 0. A cooperative launch has at most
    /// [`MAX_BEGUN`](crate::MAX_BEGUN) blocks.
    pub cooperative: bool,
    /// True to count the distinct bytes of global memory that the launch touches:
    /// [`Report::footprint`](super::Report). That takes three bits of host memory for each byte of
    /// the buffers, where they are accessed: for loads, stores, and strong accesses.
    pub footprint: bool,
    /// True to fuse `mul` and `add` as NVIDIA's assembler does, where PTX allows it, so that values
    /// can be compared with a GPU's. Counters stay the same.
    pub contract: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: 0,
            work_limit: DEFAULT_WORK,
            most_blocks: u64::MAX,
            checks: Checks::NONE,
            cooperative: false,
            footprint: false,
            contract: false,
        }
    }
}
