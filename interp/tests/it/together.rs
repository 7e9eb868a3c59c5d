//! Atomics, warp operations and barriers: the same kernels ran on an H100, whose output is recorded
//! as a hash for each kernel.
//!
//! A kernel reads `in` and writes `out`. Its input is pseudo-random words, or all pairs of a type's
//! edge values. Each thread reads three values of 8 bytes: the value in memory, the operand, and
//! another value.

use serde_json::Value;
use warpstride_interp::{Config, Memory, Module, run};

use super::shape;

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

fn hexadecimal(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().expect("text"), 16).expect("a number")
}

fn random_words(count: usize) -> Vec<u32> {
    let step = |x: &u32| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(1), step).skip(1).take(count).map(|x| x ^ x >> 16).collect()
}

fn input(case: &Value) -> Vec<u32> {
    let Some(edges) = case["edges"].as_array() else { return random_words(number(&case["words"])) };
    let edges: Vec<u64> = edges.iter().map(hexadecimal).collect();
    let count = edges.len();
    let pairs =
        (0..count * count).map(|pair| [pair / count, pair % count, (3 * (pair / count) + pair % count) % count]);
    pairs.flatten().flat_map(|index| [edges[index] as u32, (edges[index] >> 32) as u32]).collect()
}

/// FNV-1a, word by word.
fn hash(words: &[u32]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ u64::from(*word)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn what_threads_do_together_ends_as_on_an_h100() {
    let module = Module::parse(include_str!("../data/together.ptx")).expect("it parses");
    let record: Value = serde_json::from_str(include_str!("../data/together-h100.json")).expect("it is JSON");
    let cases = record["kernels"].as_array().expect("kernels");
    assert_eq!(cases.len(), module.kernels().count());
    for case in cases {
        let name = case["kernel"].as_str().expect("a name");
        let memory = Memory::new(1 << 20);
        let input = memory.upload(&input(case)).expect("it fits");
        let words = number(&case["output"]);
        let output = memory.upload(&vec![0_u32; words]).expect("it fits");
        let params = [input.to_le_bytes(), output.to_le_bytes()].concat();
        let shape = shape(number(&case["blocks"]) as u32, number(&case["threads"]) as u32);
        let report = run(module.kernel(name).expect("a kernel"), &shape, &params, &memory, &Config::default());
        report.unwrap_or_else(|stop| panic!("{stop}"));
        let got = memory.download::<u32>(output, words).expect("it is there");
        assert_eq!(hash(&got), hexadecimal(&case["hash"]), "{name}");
    }
}
