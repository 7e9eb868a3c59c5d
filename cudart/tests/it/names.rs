//! The names that the two libraries export, and their versions.

use std::collections::BTreeSet;
use std::path::PathBuf;

use object::elf::FileHeader64;
use object::read::elf::{ElfFile, Sym as _};
use object::{Endianness, Object as _, ObjectSymbol as _};

/// The functions of NVIDIA's libraries, one a line.
const NAMES_12: &str = include_str!("../../names-12.txt");
const NAMES_13: &str = include_str!("../../names-13.txt");

/// Returns the path of a library: cargo puts it next to the tests.
pub(crate) fn library(name: &str) -> PathBuf {
    std::env::current_exe().expect("this program").with_file_name(name)
}

fn compare(library_name: &str, names: &str, count: usize) {
    let file = std::fs::read(library(library_name)).expect("the library");
    let file = object::File::parse(&*file).expect("a shared library");
    let functions = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.name() != Ok(""));
    let exported: BTreeSet<_> = functions
        .filter(|symbol| symbol.kind() == object::SymbolKind::Text)
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    let wanted: BTreeSet<_> = names.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(wanted.len(), count);
    let missing: Vec<_> = wanted.difference(&exported).copied().collect();
    let more: Vec<_> = exported.difference(&wanted).copied().collect();
    assert!(more.is_empty(), "NVIDIA's library does not export these:\n{}", more.join("\n"));
    assert!(
        missing.is_empty(),
        "these {} names are missing; support them, or add them to `unsupported!` in cudart/src/unsupported.rs:\n{}",
        missing.len(),
        missing.join(" ")
    );
}

#[test]
fn the_libraries_export_the_names_of_nvidias_and_no_others() {
    compare("libwarpstride_cudart.so", NAMES_13, 458);
    compare("libwarpstride_cudart_12.so", NAMES_12, 435);
}

/// Programs that were linked with NVIDIA's library ask for its functions with the version of its
/// name.
#[test]
fn each_function_has_the_version_of_the_librarys_name() {
    for (name, version) in
        [("libwarpstride_cudart.so", &b"libcudart.so.13"[..]), ("libwarpstride_cudart_12.so", b"libcudart.so.12")]
    {
        let bytes = std::fs::read(library(name)).expect("the library");
        let file = ElfFile::<FileHeader64<Endianness>>::parse(&*bytes).expect("a shared library");
        let (endian, sections) = (file.endian(), file.elf_section_table());
        let versions = sections.versions(endian, &*bytes).expect("versions").expect("a table of versions");
        let symbols = sections.symbols(endian, &*bytes, object::elf::SHT_DYNSYM).expect("symbols");
        let of_cuda = symbols.enumerate().filter(|(_, symbol)| !symbol.is_undefined(endian)).filter(|(_, symbol)| {
            symbols
                .symbol_name(endian, symbol)
                .is_ok_and(|name| name.starts_with(b"cuda") || name.starts_with(b"__cuda"))
        });
        let mut count = 0;
        for (index, _) in of_cuda {
            let found = versions.version(versions.version_index(endian, index)).expect("an index");
            assert_eq!(found.map(|found| found.name()), Some(version));
            count += 1;
        }
        assert!(count > 400, "{count}");
    }
}
