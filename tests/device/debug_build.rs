//! A driver that runs a debug build of the crate's kernels, which `scripts/debug-kernels` makes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;

use warpstride::abi::ENTRIES;
use warpstride::driver::Driver;

use crate::hooked::Hooked;

/// Returns the path of the debug build's PTX, if there is one.
pub(crate) fn path() -> Option<OsString> {
    std::env::var_os("WARPSTRIDE_DEBUG_KERNELS")
}

/// Wraps another driver. A module of one of the crate's entries becomes that entry of the debug
/// build.
pub(crate) fn over(inner: Arc<dyn Driver>) -> Hooked {
    let path = path().expect("the case is run where it names the PTX");
    let text = std::fs::read_to_string(path).expect("the PTX is there");
    let ptx = move |ptx: &str| {
        let is_of = |name: &str| ptx.contains(&format!(".visible .entry {name}("));
        ENTRIES.iter().find(|entry| is_of(entry.name)).map(|entry| module(&text, entry.name))
    };
    Hooked { ptx: Box::new(ptx), ..Hooked::new(inner) }
}

/// A function that the core library needs for texts of panics.
const MEMCMP: &str = "
.func (.param .b32 func_retval0) memcmp(.param .b64 one, .param .b64 other, .param .b64 bytes)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    ld.param.b64 %rd1, [one];
    ld.param.b64 %rd2, [other];
    ld.param.b64 %rd3, [bytes];
    mov.b32 %r3, 0;
next:
    setp.eq.b64 %p1, %rd3, 0;
    @%p1 bra done;
    ld.b8 %r1, [%rd1];
    ld.b8 %r2, [%rd2];
    sub.s32 %r3, %r1, %r2;
    setp.ne.b32 %p2, %r3, 0;
    @%p2 bra done;
    add.s64 %rd1, %rd1, 1;
    add.s64 %rd2, %rd2, 1;
    add.s64 %rd3, %rd3, -1;
    bra next;
done:
    st.param.b32 [func_retval0], %r3;
    ret;
}
";

/// Returns `name` of a debug build and the functions that it reaches. Most of the rest is the whole
/// core library, which exceeds the software GPU's limits.
fn module(text: &str, name: &str) -> String {
    // File names and debug sections follow the code and are not needed here.
    let (code, rest) = text.split_once("\n\t.file").expect("a debug build names its files");
    let files = rest.split("\n\t.section").next().unwrap_or_default();
    let starts: Vec<usize> = [".visible", ".func", ".extern", ".global"]
        .iter()
        .flat_map(|directive| code.match_indices(directive).map(|(at, _)| at))
        .filter(|&at| code[..at].ends_with('\n'))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .chain([code.len()])
        .collect();
    let items: Vec<&str> = starts.windows(2).map(|ends| &code[ends[0]..ends[1]]).collect();
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, item) in items.iter().enumerate() {
        // The word that is not a directive, a number or a function's result.
        let own = words(item)
            .find(|word| !word.starts_with(|c: char| c == '.' || c.is_ascii_digit()) && *word != "func_retval0");
        by_name.entry(own.expect("an item has a name")).or_default().push(number);
    }
    let mut open: Vec<usize> = by_name.get(name).expect("the debug build has the entry").clone();
    let mut reached = BTreeSet::new();
    while let Some(number) = open.pop() {
        if reached.insert(number) {
            open.extend(words(items[number]).filter_map(|word| by_name.get(word)).flatten());
        }
    }
    let defined =
        |item| if words(item).any(|word| word == ".extern") && item.contains(" memcmp") { MEMCMP } else { item };
    let reached: String = reached.into_iter().map(|number| defined(items[number])).collect();
    [&code[..starts[0]], &reached, "\n\t.file", files, "\n"].concat()
}

/// Returns its words without comments: a comment after each function announces the next.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = code.flat_map(|code| code.split(|c: char| !(c.is_ascii_alphanumeric() || "_$.%".contains(c))));
    words.filter(|word| !word.is_empty())
}
