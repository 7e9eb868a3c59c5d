//! Text that is almost PTX, or not at all: it is parsed, lowered and launched within limits, or
//! refused, and nothing panics. All of it is drawn from fixed seeds; `fuzz/` continues from there.
//! The short form has a twentieth of the mutated texts and a tenth of the random ones. It cuts each
//! kernel that is long enough at 6 places, instead of at every thirteenth.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rayon::prelude::*;
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Config, Memory, Module, run};

use crate::long::short_or_long;
use crate::programs::random::Random;

/// Replacements for numbers: the ends of all ranges in PTX.
const EXTREMES: &str = "0 1 -1 3 31 32 255 256 1024 65535 65536 1048576 2147483647 2147483648 -2147483648 4294967295
    4294967296 1099511627775 9223372036854775807 9223372036854775808 18446744073709551615
    99999999999999999999 0x 0xFFFFFFFFFFFFFFFFF 0f7FC00001 0d7FF0000000000000 08 1.e400";

/// Modules of one kernel each: those of the library `warpstride`, and those of the files under
/// `tests`.
fn corpus() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["../src/ptx", "tests/data", "tests/ptx", "tests/programs"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut texts);
    }
    assert!(texts.len() > 100, "the kernels and the programs are there");
    texts.iter().flat_map(|text| kernels_of(text)).collect()
}

fn collect(folder: &Path, texts: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            texts.push(fs::read_to_string(path).expect("text"));
        }
    }
}

/// A text's kernels, each after the text that precedes the first kernel.
fn kernels_of(text: &str) -> Vec<String> {
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut starts: Vec<usize> = text.match_indices(".entry ").map(|(at, _)| line_start(at)).collect();
    let head = &text[..starts.first().copied().unwrap_or(text.len())];
    starts.push(text.len());
    starts.windows(2).map(|pair| format!("{head}{}", &text[pair[0]..pair[1]])).collect()
}

/// Words, numbers and single marks, each with the blanks after it.
fn tokens(text: &str) -> Vec<&str> {
    let in_word = |c: char| c.is_ascii_alphanumeric() || "_$%.".contains(c);
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c| !in_word(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let blanks = rest[word..].find(|c: char| !c.is_whitespace()).unwrap_or(rest.len() - word);
        let (token, behind) = rest.split_at(word + blanks);
        tokens.push(token);
        rest = behind;
    }
    tokens
}

/// Deletes, doubles or moves a few tokens, or replaces them by others or by extremes; then perhaps
/// changes a few bytes.
fn mutated<'t>(text: &'t str, words: &[&'t str], random: &mut Random) -> String {
    let (mut tokens, extremes) = (tokens(text), EXTREMES.split_whitespace().collect::<Vec<_>>());
    for _ in 0..1 + random.below(4) {
        let at = random.below(tokens.len());
        let other = random.below(tokens.len());
        match random.below(8) {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[at]),
            2 => tokens.swap(at, other),
            3 => tokens[at] = tokens[other],
            4 => tokens[at] = *random.pick(words),
            5 => tokens.insert(at, *random.pick(words)),
            _ => {
                let number = |token: &&str| token.starts_with(|c: char| c.is_ascii_digit());
                let numbers: Vec<usize> = (0..tokens.len()).filter(|&at| number(&tokens[at])).collect();
                if !numbers.is_empty() {
                    tokens[*random.pick(&numbers)] = extremes[random.below(extremes.len())];
                }
            }
        }
        if tokens.is_empty() {
            break;
        }
    }
    let mut bytes = tokens.concat().into_bytes();
    if random.below(4) == 0 && !bytes.is_empty() {
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = random.bits() as u8;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses, lowers and launches any text, and renders its messages. Returns the number of kernels
/// that ran to their end.
fn survives(text: &str, threads: usize) -> usize {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let module = match Module::parse(text) {
            Ok(module) => module,
            Err(error) => return usize::from(error.to_string().is_empty()),
        };
        let mut ended = 0;
        for kernel in module.kernels() {
            let memory = Memory::new(1 << 20);
            let buffer = memory.alloc(4096).expect("it fits");
            memory.fill(buffer, 0, 4096).expect("it is there");
            let mut params = vec![0; kernel.param_bytes().min(8192)];
            for param in kernel.params() {
                let value = if param.size == 8 { buffer } else { 9 };
                let place = params.get_mut(param.offset..).into_iter().flatten();
                place.zip(value.to_le_bytes()).for_each(|(byte, value)| *byte = value);
            }
            let shape = LaunchShape { grid: [2, 1, 2], block: [33, 2, 1], dynamic_shared: 64 };
            let limits = Config { work_limit: 100_000, ..Config::default() };
            let config = Config { threads, ..limits };
            match run(kernel, &shape, &params, &memory, &config) {
                Ok(_) => ended += 1,
                Err(stop) => assert!(stop.to_string().starts_with(['k', 'u']), "{stop}"),
            }
        }
        ended
    }));
    outcome.unwrap_or_else(|_| panic!("a panic, of this text:\n{text}"))
}

#[test]
fn mutated_kernels_run_or_are_refused() {
    let corpus = corpus();
    let texts: Vec<&str> = corpus.iter().map(String::as_str).collect();
    let words: Vec<&str> = texts.iter().flat_map(|text| tokens(text)).collect();
    let count = short_or_long(1_000, 20_000);
    let survives_mutated = |seed: u64| {
        let mut random = Random::new(seed);
        let source = *random.pick(&texts);
        let text = mutated(source, &words, &mut random);
        survives(&text, 1 + seed as usize % 2)
    };
    let ended: usize = (0..count).into_par_iter().map(survives_mutated).sum();
    // Enough must reach the end to test the parts after the parser, and enough must not.
    assert!((count as usize / 50..count as usize).contains(&ended), "{ended} of {count}");
}

#[test]
fn truncated_kernels_run_or_are_refused() {
    corpus().par_iter().enumerate().filter(|(_, text)| text.is_ascii()).for_each(|(number, text)| {
        // Over the corpus, cuts fall at every position in a line: steps are odd, and start
        // elsewhere in each kernel.
        let step = short_or_long(text.len() / 6, 13).max(13) | 1;
        for end in (number % step..text.len()).step_by(step) {
            survives(&text[..end], 1);
            survives(&format!("{}}}", &text[..end]), 1);
        }
    });
}

#[test]
fn random_bytes_are_refused() {
    let marks = b"{}[]()<>,;:@!+-/*\"% \n\t.r0";
    for seed in 0..short_or_long(40, 400) {
        let mut random = Random::new(seed);
        let any: Vec<u8> = (0..random.below(2000)).map(|_| random.bits() as u8).collect();
        survives(&String::from_utf8_lossy(&any), 1);
        let some: String = (0..random.below(2000)).map(|_| *random.pick(marks) as char).collect();
        survives(&some, 1);
        survives(&format!(".version 7.0\n.target sm_80\n.address_size 64\n.entry k() {{ {some}"), 1);
    }
}
