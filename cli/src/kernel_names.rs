//! Names of kernels as C++ writes them, and as the PTX does.

use std::fmt::{self, Write};

use anyhow::Result;
use cpp_demangle::{DemangleOptions, Symbol};
use warpstride::error::counted;
use warpstride::interp::{Kernel, Module};

use super::{refuse, require};

/// The longest name in PTX that is demangled, and the longest that it may become: names repeat
/// parts of themselves, and a hostile one without end.
const MOST: usize = 4096;

/// A text of a bounded length.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MOST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn demangled(name: &str, options: DemangleOptions) -> Option<String> {
    // Without the prefix the demangler takes `f` for a type.
    if name.len() > MOST || !name.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(name).ok()?;
    let mut text = Bounded::default();
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(without_tags(&text.0))
}

/// A name without its tags. Numba puts the flags of the compilation into one: `scale[abi:v1]`.
fn without_tags(name: &str) -> String {
    let mut parts = name.split("[abi:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + part.split_once(']').map_or("", |(_, after)| after))
}

/// The name of a kernel in C++, without its parameters: `ns::transpose<float>`. Names of C, of Rust
/// and of handwritten PTX stay as they are.
pub(super) fn short(name: &str) -> String {
    demangled(name, DemangleOptions::new().no_params().no_return_type()).unwrap_or_else(|| name.to_owned())
}

/// The same with its parameters: `ns::transpose<float>(float*, int)`.
fn full(name: &str) -> String {
    demangled(name, DemangleOptions::new().no_return_type()).unwrap_or_else(|| name.to_owned())
}

/// A text with every mangled name in it as C++ writes it.
pub(super) fn readable(text: &str) -> String {
    let mut readable = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_Z") {
        let (before, name) = rest.split_at(at);
        let is_inside = before.ends_with(is_part);
        let end = name.find(|c| !is_part(c)).unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        readable.push_str(before);
        if is_inside {
            readable.push_str(name)
        } else {
            readable.push_str(&short(name))
        }
        rest = after;
    }
    readable + rest
}

/// Returns whether a character is part of a name in PTX.
fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

/// The number of names that a kernel goes by.
const NAMES: usize = 6;

/// A kernel's names, without spaces, in the order in which one that is typed is looked for.
fn names(kernel: &Kernel) -> [String; NAMES] {
    let (full, short) = (full(kernel.name()), short(kernel.name()));
    let path = short.split_once('<').map_or(&*short, |(path, _)| path);
    let namespace = path.rfind("::").map_or(0, |at| at + 2);
    let (without_namespace, last) = (short[namespace..].to_owned(), path[namespace..].to_owned());
    let path = path.to_owned();
    [kernel.name().to_owned(), full, short, without_namespace, path, last].map(|name| without_spaces(&name))
}

/// The kernel that is named, in whole or as far as no other is called so, or the only one.
pub(super) fn find<'m>(module: &'m Module, entry: Option<&str>, file: impl fmt::Display) -> Result<&'m Kernel> {
    let kernels: Vec<&Kernel> = module.kernels().collect();
    require!(
        !kernels.is_empty(),
        InvalidArgument,
        "{file} has no kernel; check the file, and in C++ that a kernel is `__global__`, and a template instantiated"
    );
    let Some(entry) = entry else {
        require!(
            kernels.len() == 1,
            InvalidArgument,
            "{file} has {}; name one with --entry: {}",
            counted(kernels.len(), "kernel"),
            list(&kernels)
        );
        return Ok(kernels[0]);
    };
    let wanted = without_spaces(entry);
    let called: Vec<(&Kernel, [String; NAMES])> = kernels.iter().map(|&kernel| (kernel, names(kernel))).collect();
    for how in 0..NAMES {
        let same = called.iter().filter(|(_, names)| names[how] == wanted).map(|&(kernel, _)| kernel);
        let same: Vec<&Kernel> = same.collect();
        match *same {
            [] => {}
            [kernel] => return Ok(kernel),
            _ => {
                let count = counted(same.len(), "kernel");
                refuse!(InvalidArgument, "{file} has {count} called `{entry}`; name one with --entry: {}", list(&same))
            }
        }
    }
    refuse!(InvalidArgument, "{file} has no kernel `{entry}`; name one of: {}", list(&kernels))
}

/// The name in PTX of a variable that is named as C++ or the PTX does, with its namespace or
/// without.
pub(super) fn find_variable<'m>(module: &'m Module, typed: &str, file: impl fmt::Display) -> Result<&'m str> {
    let names: Vec<&str> = module.variables().collect();
    if let Some(same) = names.iter().find(|name| **name == typed) {
        return Ok(same);
    }
    let is_called = |name: &str| {
        let short = short(name);
        short == typed || short.rsplit("::").next() == Some(typed)
    };
    let called: Vec<&str> = names.iter().copied().filter(|name| is_called(name)).collect();
    match *called {
        [name] => Ok(name),
        [] => {
            // Compilers keep texts in variables, under names that C++ does not have.
            let written = names.iter().filter(|name| !name.starts_with('$') && !name.starts_with("__unnamed"));
            let names: Vec<String> = written.map(|name| short(name)).collect();
            let list = if names.is_empty() { "it has none".into() } else { format!("it has {}", names.join(", ")) };
            refuse!(InvalidArgument, "--set {typed}: {file} has no variable `{typed}`; {list}")
        }
        _ => {
            let names = called.join(", ");
            refuse!(InvalidArgument, "--set {typed}: {file} has several variables `{typed}`; name one of: {names}")
        }
    }
}

/// The kernels by the shortest names that tell them apart.
fn list(kernels: &[&Kernel]) -> String {
    let short: Vec<String> = kernels.iter().map(|kernel| short(kernel.name())).collect();
    let name = |(kernel, name): (&&Kernel, &String)| {
        let is_alone = short.iter().filter(|other| *other == name).count() == 1;
        if is_alone { name.clone() } else { full(kernel.name()) }
    };
    kernels.iter().zip(&short).map(name).collect::<Vec<_>>().join(", ")
}

fn without_spaces(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests;
