//! Applies functions of plain values to all lanes of a warp, in loops that the compiler turns into
//! vector instructions.
//!
//! Every lane is computed, active or not, and only the results of active lanes are written. That is
//! possible because the functions are total, and a loop without a condition vectorises.

use super::Issue;
use super::registers::{Registers, Value};

macro_rules! map {
    ($name:ident: $($source:ident $row:ident $index:literal)*) => {
        /// `d = f(sources)` in the lanes of `mask`.
        #[inline(always)]
        pub(super) fn $name<$($source: Value,)* R: Value, F: Fn($($source),*) -> R>(
            registers: &mut Registers, Issue { ins, mask }: Issue, f: F,
        ) {
            // Copies the sources, so that the compiler knows that writing the result does not
            // change them.
            $(let $row = $source::read(registers, ins.s[$index]);)*
            let row = R::row(|lane| f($($source::lane(&$row, lane)),*));
            R::write(registers, ins.d, &row, mask);
        }
    };
}

map!(map1: A a 0);
map!(map2: A a 0 B b 1);
map!(map3: A a 0 B b 1 C c 2);
map!(map4: A a 0 B b 1 C c 2 D d 3);

/// `d = f(sources)` on whole predicates.
#[inline(always)]
pub(super) fn predicates<const N: usize>(
    registers: &mut Registers,
    Issue { ins, mask }: Issue,
    f: impl Fn([u32; N]) -> u32,
) {
    let row = f(std::array::from_fn(|source| bool::read(registers, ins.s[source])));
    registers.write_pred(ins.d, row, mask);
}
