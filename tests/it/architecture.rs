//! The shape of the packages as a test, as far as Cargo does not enforce it: which module may
//! import which, and where `unsafe` may stand.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the library from the bottom up; a module imports from its own level and below.
const LEVELS: &[&[&str]] = &[
    &["error", "abi", "element", "layout", "names", "ptx", "random", "sync"],
    &["driver"],
    &["alloc", "host", "tuning_file"],
    // Handles of devices and streams, allocations, and the state that these share.
    &["context"],
    &["device"],
    &["stream"],
    &["io", "memory"],
    &["view"],
    &["array", "transfer"],
    &["ops"],
    &["interop"],
    &["pipeline"],
    &["out_of_core"],
    &["roofline"],
    // It measures links by the room below.
    &["distributed"],
];

/// The modules that must stay ignorant of the rest, and all that they may know.
const NARROW: &[(&str, &[&str])] =
    &[("error", &["names"]), ("abi", &[]), ("layout", &["error"]), ("io", &["element", "error"])];

/// Rooms of a package that have levels of their own, from the bottom up: a module of the room
/// imports from its own level and below.
const ROOMS: &[(&str, &str, &[&[&str]])] = &[
    (
        "interp/src",
        "gpu",
        &[
            &["vocabulary"],
            &["mem", "model", "modifiers", "reduce"],
            // The text of PTX, and the computations of its instructions.
            &["isa", "parse", "reason", "semantics", "tensor_map", "variables"],
            &["code", "spelling"],
            &["cfg", "check", "work"],
            &["lower"],
            &["module"],
            // How a launch is run, and what comes of it.
            &["config", "report", "stop"],
            &["exec"],
            &["args", "coverage", "expect"],
        ],
    ),
    (
        "src",
        "ops",
        &[
            &["target", "units"],
            // Every operation is made of these: operands, plans and thresholds.
            &["operand", "plan", "tuning"],
            &["choose", "numbering", "sectors", "span"],
            &["arithmetic", "movement", "probe", "spin"],
            // A conversion that keeps the bits is a move.
            &["conversion"],
        ],
    ),
];

/// Files that may hold `unsafe`, with what for. Anything else is safe Rust.
const UNSAFE: &[&str] = &[
    "src/abi/parts.rs",                // the promise that parameters have no padding
    "src/element.rs",                  // the promise that a type is plain bytes
    "src/driver/",                     // the seam itself, and what lies behind it
    "src/alloc/",                      // blocks of device memory, given back once
    "interp/src/gpu/exec/dispatch.rs", // the one call that picks the vector width
    "interp/src/gpu/mem/host.rs",      // contents that programs of the host use too
    "src/host/",                       // page-locked memory, and copies through it
    "src/context/",                    // the safe side of the seam: modules, allocations, streams and events
    "src/device/",                     // the safe side of the seam: parameters as bytes
    "src/memory/",                     // the safe side of the seam: buffers
    "src/stream/",                     // the safe side of the seam: graphs
    "src/transfer/",                   // copies, and the host memory that they borrow or own
    "src/ops/",                        // launches, and the raw entry points
    "src/interop/",                    // launches on memory of other crates
    "src/distributed/",                // launches on several GPUs
    "cli/src/cuda_cpp/nvrtc.rs",       // calls of NVIDIA's compiler, a C library
    "cli/src/run_ptx/gpu.rs",          // launches of foreign PTX, for which the user answers
    "cli/src/run_ptx/variables.rs",    // copies into variables of foreign PTX
    "cli/src/signals.rs",              // whether a signal is ignored, which only the C library says
    "cli/src/alloc/",                  // calls of an allocator
    "cuda/src/",                       // functions of C, whose callers pass pointers
    "cudart/src/",                     // the same, of another library
    "ptx_run/src/",                    // one more, whose kernels use the memory of its caller
];

struct Source {
    /// The folder of the package's sources.
    root: &'static str,
    /// The path below it.
    path: String,
    module: String,
    /// The text without comments.
    code: String,
}

/// The folders of the packages' sources.
const ROOTS: [&str; 6] = ["cli/src", "cuda/src", "cudart/src", "interp/src", "ptx_run/src", "src"];

fn sources() -> Vec<Source> {
    ROOTS.into_iter().flat_map(sources_of).collect()
}

fn sources_of(root: &'static str) -> Vec<Source> {
    let files = texts_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(root), &[""]);
    assert!(files.len() > 4, "only {} files under {root}", files.len());
    let source = |(path, text): (String, String)| {
        let module = path.split('/').next().expect("a name").trim_end_matches(".rs").to_owned();
        let code = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
        Source { root, path, module, code }
    };
    files.into_iter().map(source).collect()
}

/// Every file of Rust in these folders, by its path below `root`, with its text.
fn texts_below(root: &Path, folders: &[&str]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    folders.iter().for_each(|folder| collect(&root.join(folder), &mut files));
    let read = |file: PathBuf| {
        let path = file.strip_prefix(root).expect("it was found there").to_str().expect("plain names").to_owned();
        (path, fs::read_to_string(&file).expect("readable"))
    };
    files.into_iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn level(module: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&module))
}

/// The modules that `code` names as `crate::module` or `warpstride::module`.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for prefix in ["crate::", "warpstride::"] {
        for (at, _) in code.match_indices(prefix) {
            let rest = &code[at + prefix.len()..];
            let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            assert!(!name.is_empty(), "imports name one module each: {}", &rest[..rest.len().min(40)]);
            found.push(name);
        }
    }
    found
}

#[test]
fn nothing_imports_upwards() {
    let mut wrong = Vec::new();
    for source in sources_of("src").iter().filter(|source| source.module != "lib") {
        let own = level(&source.module).unwrap_or_else(|| panic!("{} belongs to no level", source.path));
        let code = source.code.split("mod tests").next().unwrap_or_default();
        for name in imports(code) {
            // Names that are not modules are re-exports of the root: `Error`, `Result`.
            let Some(imported) = level(&name) else { continue };
            let narrow = NARROW.iter().find(|(module, _)| *module == source.module);
            let known = narrow.is_none_or(|(module, allowed)| name == *module || allowed.contains(&name.as_str()));
            if imported > own || !known {
                wrong.push(format!("{} imports {name}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "imports against the dependency order:\n{}", wrong.join("\n"));
}

/// The module or the name that each name of a file is taken from by `use module::name` or
/// `use module::{name, name}`.
fn taken_from(code: &str) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    for statement in code.split(';').filter_map(|statement| Some(statement.rsplit_once("use ")?.1)) {
        let Some((module, names)) = statement.split_once("::") else { continue };
        let names = names.trim_matches(|c: char| "{}".contains(c) || c.is_whitespace()).split(',').map(str::trim);
        found.extend(names.filter(|name| !name.is_empty() && *name != module).map(|name| (name, module)));
    }
    found
}

/// The name of `room` that a path of `code` in the file `path` leads to, for each path that leads
/// into the room's own level: `crate::room::name`, or `super::name` with as many `super` as lead
/// there. The name is a module, or an item that the room takes from one.
fn imports_within(room: &str, path: &str, code: &str) -> Vec<String> {
    let depth = path.trim_end_matches("/mod.rs").matches('/').count();
    let mut found = Vec::new();
    for prefix in [format!("crate::{room}::"), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&prefix) {
            // `super::super::` is found within `super::super::super::` too.
            if code[..at].ends_with("::") {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            let list = rest.strip_prefix('{').and_then(|list| list.split('}').next());
            let paths = list.map_or(vec![rest], |list| list.split(',').collect());
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let name = |path: &str| path.trim_start().chars().take_while(|&c| is_part(c)).collect::<String>();
            found.extend(paths.into_iter().map(name).filter(|name| !name.is_empty() && name != "super"));
        }
    }
    found
}

#[test]
fn nothing_imports_upwards_within_a_room() {
    let mut wrong = Vec::new();
    for &(root, room, levels) in ROOMS {
        let all = sources_of(root);
        let own_file = all.iter().find(|source| source.path == format!("{room}/mod.rs")).expect("a room has a file");
        let taken = taken_from(&own_file.code);
        let level = |name: &str| {
            let of = |module: &str| levels.iter().position(|level| level.contains(&module));
            std::iter::successors(Some(name), |name| taken.get(name).copied()).take(4).find_map(of)
        };
        for source in all.iter().filter(|source| source.module == room && source.path != own_file.path) {
            let module = source.path.split('/').nth(1).expect("a module").trim_end_matches(".rs");
            let own = level(module).unwrap_or_else(|| panic!("{} belongs to no level of {room}", source.path));
            let code = source.code.split("mod tests").next().unwrap_or_default();
            for name in imports_within(room, &source.path, code) {
                // In a file with modules of its own, `super` leads less far: a name that the room
                // has not is theirs. A type of the room itself is above all its modules.
                let is_item = name.starts_with(|first: char| first.is_ascii_uppercase());
                if level(&name).map_or(is_item, |imported| imported > own) {
                    wrong.push(format!("{} imports {name}", source.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "imports against the order within a room:\n{}", wrong.join("\n"));
}

#[test]
fn the_command_line_knows_no_kernels() {
    let knows =
        |source: &Source| ["warpstride::abi", "warpstride::kernel"].iter().any(|name| source.code.contains(name));
    let wrong: Vec<_> = sources_of("cli/src").into_iter().filter(knows).map(|source| source.path).collect();
    assert!(wrong.is_empty(), "plans name their kernels (Plan::entry), and these name them too: {wrong:?}");
}

#[test]
fn every_module_of_the_crate_has_a_level() {
    let root = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).expect("readable");
    let modules = root.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let order: Vec<usize> =
        modules.map(|module| level(module).unwrap_or_else(|| panic!("{module}: no level"))).collect();
    assert!(!order.is_empty() && order.is_sorted(), "src/lib.rs lists modules in dependency order: {order:?}");
}

#[test]
fn unsafe_stands_where_it_may() {
    let mut wrong = Vec::new();
    let mut in_interp = 0;
    for source in sources() {
        let uses = source.code.matches("unsafe ").count();
        let path = format!("{}/{}", source.root, source.path);
        if uses > 0 && !UNSAFE.iter().any(|allowed| path.starts_with(allowed)) {
            wrong.push(path);
        }
        if source.root == "interp/src" {
            in_interp += uses;
        }
    }
    assert!(wrong.is_empty(), "unsafe code in {wrong:?}; the list in this file says where it may stand");
    assert_eq!(
        in_interp, 10,
        "the software GPU has one unsafe call, which picks the vector width, and nine places for memory of the host"
    );
}

/// Files that may be longer than [`LONGEST`]: tables, which a reader looks up and does not read.
const TABLES: &[&str] = &["interp/src/gpu/isa.rs"];

/// Most lines of a file.
const LONGEST: usize = 600;

/// Every file of Rust, by its path in the repository, with its text.
fn texts() -> Vec<(String, String)> {
    let folders =
        ["benches", "build", "cli", "cuda", "cudart", "examples", "interp", "kernels/src", "ptx_run", "src", "tests"];
    texts_below(Path::new(env!("CARGO_MANIFEST_DIR")), &folders)
}

#[test]
fn files_are_short_enough_to_read() {
    let mut long = Vec::new();
    for (path, text) in texts() {
        let lines = text.lines().count();
        if lines > LONGEST && !TABLES.contains(&path.as_str()) {
            long.push(format!("{path}: {lines}"));
        }
    }
    assert!(long.is_empty(), "files of more than {LONGEST} lines:\n{}", long.join("\n"));
}

/// Most characters of a line of prose. Code, also that in comments, has [`WIDEST_CODE`]; rows of
/// tables cannot be wrapped.
const WIDEST: usize = 100;
const WIDEST_CODE: usize = 120;

#[test]
fn comments_are_narrow_enough_to_read() {
    let mut wide = Vec::new();
    for (path, text) in texts().into_iter().filter(|(path, _)| !TABLES.contains(&path.as_str())) {
        let mut in_code = false;
        for (number, line) in (1..).zip(text.lines()) {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                in_code = false;
                continue;
            };
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            let most = if in_code { WIDEST_CODE } else { WIDEST };
            in_code ^= comment.starts_with("```");
            if line.chars().count() > most && (in_code || !comment.starts_with('|')) {
                wide.push(format!("{path}:{number}"));
            }
        }
    }
    assert!(wide.is_empty(), "comments of more than {WIDEST} characters a line:\n{}", wide.join("\n"));
}

/// A kernel is chosen by its family and a key (`abi::Key`): a name that another line of the table
/// begins with too, or a suffix that means another thing, would choose another one.
#[test]
fn no_kernel_is_chosen_by_a_part_of_its_name() {
    let parts = [
        "starts_with(",
        "ends_with(",
        "strip_prefix(",
        "strip_suffix(",
        "contains(",
        "find(",
        "split_once(",
        "split_at(",
    ];
    let names = [".name().", ".stem().", ".entry().", "entry."];
    let of_names = parts.iter().flat_map(|part| names.map(|name| format!("{name}{part}")));
    let of_any = parts.map(|part| format!("{part}\""));
    let (of_names, mut seen) = (of_names.collect::<Vec<_>>(), 0);
    // The software GPU knows no kernels, and the table makes their names.
    let foreign = ["cuda/src", "cudart/src", "interp/src", "ptx_run/src"];
    for source in sources().iter().filter(|source| !foreign.contains(&source.root) && source.module != "abi") {
        seen += 1;
        // Tests may look at names.
        if source.path.ends_with("/tests.rs") {
            continue;
        }
        let code = source.code.split("mod tests").next().unwrap_or_default();
        // A chain of calls may stand on several lines.
        let code = code.split_whitespace().collect::<String>();
        let chooses = source.root == "src" && (source.module == "ops" || source.path == "device/launch.rs");
        let mut parts = of_names.iter().chain(of_any.iter().filter(|_| chooses));
        let found = parts.find(|part| code.contains(part.as_str()));
        assert!(found.is_none(), "{} has {found:?}", source.path);
    }
    assert!(seen > 100, "only {seen} files");
}

/// Clippy has no version for the kernels' compiler, so this test counts as
/// `clippy::too_many_lines` does: the lines of a body, without comments and blank lines.
#[test]
fn functions_of_kernels_are_short_enough_to_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let limits = fs::read_to_string(root.join("clippy.toml")).expect("readable");
    let limit = limits.lines().find_map(|line| line.strip_prefix("too-many-lines-threshold = "));
    let most: usize = limit.expect("clippy.toml has it").parse().expect("a number");
    let (mut functions, mut long) = (0, Vec::new());
    for (path, text) in texts().iter().filter(|(path, _)| path.starts_with("kernels/src")) {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or("").trim_end());
        let code: Vec<_> = code.filter(|line| !line.is_empty()).collect();
        for (at, line) in code.iter().enumerate() {
            let item = line.trim_start();
            if !item.starts_with("fn ") && !item.contains(" fn ") {
                continue;
            }
            functions += 1;
            // rustfmt puts the end of a body below the start of its signature.
            let end = format!("{}}}", &line[..line.len() - item.len()]);
            let body = code[at..].iter().position(|line| line.ends_with(['{', ';', '}'])).map(|start| at + start);
            let Some(start) = body.filter(|&start| code[start].ends_with('{')) else { continue };
            let lines = code[start + 1..].iter().position(|line| *line == end).expect("an end");
            if lines > most {
                long.push(format!("{path}: {lines} lines: {item}"));
            }
        }
    }
    assert!(functions > 100, "only {functions} functions");
    assert!(long.is_empty(), "functions of more than {most} lines:\n{}", long.join("\n"));
}

/// Things that messages count, and that `error::counted` is to count: of one of them there is no
/// plural.
const COUNTED: &[&str] = &[
    "bytes",
    "elements",
    "axes",
    "blocks",
    "threads",
    "arguments",
    "parameters",
    "faults",
    "sectors",
    "requests",
    "indices",
    "rows",
    "launches",
    "values",
    "cases",
    "kernels",
    "forms",
    "samples",
    "times",
    "channels",
    "strides",
];

/// Numbers that are never 1 where they stand, beyond a limit or of a size that the code knows, and
/// texts that are not shown.
const NEVER_ONE: &[&str] = &[
    "{length} bytes, more than the {MAX_HEADER}",
    "{shared} bytes of shared memory",
    "{shared} bytes of static shared memory",
    "{needed} bytes of local memory",
    "{bytes} bytes of constant memory",
    "{end} bytes are more than any GPU's local memory",
    "{bytes} bytes; at most",
    "{align} bytes; pass a multiple",
    "{inner} elements are whole columns",
    "{blocks} blocks; a GPU has clusters of",
];

#[test]
fn one_thing_is_never_many() {
    let mut wrong = Vec::new();
    for source in sources() {
        let code = source.code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        if source.path.ends_with("tests.rs") {
            continue;
        }
        for (at, _) in code.match_indices("} ") {
            let rest = code[at + 2..].trim_start_matches(['\\', '\n', ' ']);
            let thing: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
            let open = code[..at].rfind('{').unwrap_or(at);
            let number = &code[open + 1..at];
            let is_name = number.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let is_constant = !number.is_empty() && !number.chars().any(|c| c.is_ascii_lowercase());
            // `3 x 4 elements` are a product.
            let is_product = code[..open].ends_with(" x ");
            if !COUNTED.contains(&&*thing) || !is_name || is_constant || is_product {
                continue;
            }
            let text = format!("{{{number}}} {}", &rest[..rest.len().min(60)]);
            if !NEVER_ONE.iter().any(|known| text.contains(known)) {
                wrong.push(format!("{}: {}", source.path, text.lines().next().unwrap_or_default()));
            }
        }
    }
    assert!(wrong.is_empty(), "counts that error::counted is to write:\n{}", wrong.join("\n"));
}
