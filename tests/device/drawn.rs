//! The drawn permutes of `bench permute --random`, small ones: every kind by every strategy for
//! small arrays, compared with the oracle. `packed_quads` and `packed_stepped` take larger ones.

use std::collections::BTreeMap;

use warpstride::element::DType;
use warpstride::layout::Layout;
#[path = "../../cli/src/bench/drawn.rs"]
#[expect(dead_code, reason = "these tests measure nothing")]
mod permutes;

use permutes::{Kind, Sizes, cases as draw};

use crate::backend::{Setup, cases};
use crate::long::short_or_long;
use crate::matrices::Random;
use crate::permutes::{check_small, device, family};

cases! {
    Any drawn_permutes_of_every_kind,
}

/// Each case runs by the plan for large arrays, by that for its own size, and by that for the
/// oldest device.
fn drawn_permutes_of_every_kind(setup: &Setup) {
    let device = device(setup);
    let mut random = Random::new(60);
    let (mut kinds, mut kernels) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
    // The short form has an eighth on the software GPU.
    let (count, most) = if setup.is_soft() { (short_or_long(270, 2_160), 1 << 15) } else { (270, 1 << 20) };
    for case in draw(2026, count, Sizes { least: most >> 4, most }) {
        let source = case.source().unwrap();
        let result = Layout::row_major(source.shape()).unwrap();
        let check = match case.dtype {
            DType::U8 => check_small::<u8>,
            DType::U16 => check_small::<u16>,
            DType::F32 => check_small::<u32>,
            DType::F64 => check_small::<u64>,
            _ => check_small::<[f64; 2]>,
        };
        for entry in check(&device, source, result, &mut random) {
            *kernels.entry(family(entry)).or_default() += 1;
        }
        *kinds.entry(case.kind.name()).or_default() += 1;
    }
    println!("{kernels:?}");
    assert!(Kind::ALL.iter().all(|kind| kinds[kind.name()] == count / Kind::ALL.len()), "{kinds:?}");
    for kernel in ["packed", "vector_tile", "patch", "elements", "interleave", "deinterleave"] {
        assert!(kernels.contains_key(kernel), "no case was done by {kernel}: {kernels:?}");
    }
}
