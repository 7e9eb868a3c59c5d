//! The work of an instruction: its time on the host for all lanes of a warp, in units of about 10
//! ns.
//!
//! The numbers are measured and rounded up. Instructions on lanes side by side take one unit or a
//! few, those on one lane after the other take tens, and floating point made of integers takes
//! hundreds. The numbers only decide when a launch is stopped.

use super::code::Access;
use super::isa::{Form, Shape};
use super::vocabulary::Kind;

impl Form {
    /// The work of executing it once, including the data that an access to memory moves.
    pub(crate) fn work(&self, access: Access) -> u16 {
        match self.shape {
            Shape::Pure { sources, .. } if sources.contains(&Kind::Modifiers) => self.by_modifiers(),
            Shape::Pure { .. } => self.side_by_side(),
            Shape::Load | Shape::Store => match (access.width, access.sync.is_strong()) {
                // Each lane holds a lock, or waits for other processors.
                (_, true) => 60,
                // Each store exchanges the word around it.
                (1 | 2, _) => 30,
                _ if self.shape == Shape::Store => 24,
                _ => 12,
            },
            Shape::Copy | Shape::CopyRead => 24,
            Shape::CopyWait | Shape::BulkWait | Shape::Bulk | Shape::Send | Shape::Tensor => 4,
            Shape::Matrix | Shape::MatrixStore => 60,
            Shape::Fragment | Shape::FragmentStore => 200,
            Shape::Transpose => 12,
            Shape::Product => 1000,
            Shape::Atomic(_) | Shape::Arrival => 75,
            Shape::Shuffle(_) => 15,
            Shape::Reduce(_) if self.is_one_of(&["match.any"]) => 60,
            Shape::Reduce(_) => 12,
            Shape::Vote(_) | Shape::Elect(_) => 10,
            Shape::Frame => 12,
            Shape::BranchTable => 40,
            Shape::Barrier | Shape::BarrierCount | Shape::BarrierVote | Shape::Arrive | Shape::Meet => 6,
            Shape::Call | Shape::Return | Shape::Fence | Shape::WarpSync => 4,
            _ => 1,
        }
    }

    /// The work of a function that the compiler has turned into the host's vector instructions, or
    /// into a loop over the lanes.
    fn side_by_side(&self) -> u16 {
        match self.spelling {
            _ if self.is_one_of(&["div.u", "div.s", "rem."]) => 24,
            _ if self.is_one_of(&["dp", "vabsdiff", "prmt", "fns"]) => 36,
            _ if self.is_one_of(&["bf", "clz", "popc", "cvt", "lop3"]) => 5,
            spelling if spelling.ends_with("64") => 4,
            // The host takes far longer for denormal numbers.
            spelling if spelling.ends_with(".f32") && self.is_one_of(&["mul", "{fma", "fma", "div", "sqrt"]) => 3,
            _ => 1,
        }
    }

    /// The work of a function that inspects its modifiers for each lane.
    fn by_modifiers(&self) -> u16 {
        let twice = if ["16x2", "{halves}"].iter().any(|pair| self.spelling.contains(pair)) { 2 } else { 1 };
        twice
            * match self.spelling {
                "mul{,.rn}.ftz.f32" | "{fma,mad}.rn.ftz.f32" => 9,
                _ if self.is_one_of(&["sin", "cos"]) => 700,
                _ if self.is_one_of(&["min", "max", "set", "dp", "vabsdiff", "prmt"]) => 40,
                _ if self.is_one_of(&["neg", "abs", "slct"]) => 8,
                _ if self.is_one_of(&["cvt.sat.", "cvt.pack"]) => 80,
                _ if self.is_one_of(&["cvt"]) => 300,
                _ => 450,
            }
    }

    fn is_one_of(&self, beginnings: &[&str]) -> bool {
        beginnings.iter().any(|beginning| self.spelling.starts_with(beginning))
    }
}

#[cfg(test)]
mod tests;
