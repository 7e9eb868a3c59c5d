//! Modules, libraries and the linker.

use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::ptr::{null, null_mut};

use crate::api::{Context, launch};
use crate::calls::{call, download, ok, upload};
use crate::long::missing;

const INVALID_VALUE: u32 = 1;
const NO_BINARY: u32 = 209;
const INVALID_PTX: u32 = 218;
const NO_FILE: u32 = 301;
const INVALID_HANDLE: u32 = 400;
const NOT_FOUND: u32 = 500;
const NOT_SUPPORTED: u32 = 801;

/// Fatbinaries of `data/fatbin.cu` by nvcc 13.5, which hold the kernel `add`.
const FATBINS: [&[u8]; 4] = [
    include_bytes!("../data/plain.fatbin"),
    include_bytes!("../data/lz4.fatbin"),
    include_bytes!("../data/zstd.fatbin"),
    include_bytes!("../data/several.fatbin"),
];
const MACHINE_CODE: &[u8] = include_bytes!("../data/machine_code.fatbin");

/// Defines what `CALLER` calls.
const CALLEE: &[u8] = b".version 7.0\n.target sm_75\n.address_size 64\n.global .align 4 .b32 factor = 3;\n\
    .visible .func (.param .b32 result) scaled(.param .b32 x) { .reg .b32 %r<4>; ld.param.b32 %r1, [x]; \
    ld.global.b32 %r2, [factor]; mul.lo.u32 %r3, %r1, %r2; st.param.b32 [result], %r3; ret; }\0";
const CALLER: &[u8] = b".version 7.0\n.target sm_75\n.address_size 64\n.global .align 4 .b32 factor = 1;\n\
    .extern .func (.param .b32 result) scaled(.param .b32 x);\n\
    .visible .entry k(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; \
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), scaled, (a); ld.param.b32 %r2, [b]; } \
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2; ret; }\0";

/// Loads an image.
fn load(image: &[u8]) -> u64 {
    let mut module = 0_u64;
    ok!(cuModuleLoadData(&raw mut module, image.as_ptr()));
    module
}

/// Finds a kernel of a module.
fn function(module: u64, name: &CStr) -> u64 {
    let mut function = 0_u64;
    ok!(cuModuleGetFunction(&raw mut function, module, name.as_ptr()));
    function
}

/// Launches `add`, which adds 5 to each of `n` values.
fn check_add(function: u64) {
    let data = upload(&[1, 2, 3]);
    assert_eq!(launch(function, 3, 0, &mut [data, 2]), 0);
    assert_eq!(download(data, 3), [6, 7, 3]);
}

/// Loads an image as a library.
fn load_library(image: *const u8) -> (u32, u64) {
    let mut library = 0_u64;
    let (none, no_values) = (null::<u32>(), null_mut::<c_void>());
    let code = call!(cuLibraryLoadData(&raw mut library, image, none, no_values, 0_u32, none, no_values, 0_u32));
    (code, library)
}

#[test]
fn fatbinaries_of_every_compression_load() {
    let _context = Context::new();
    for image in FATBINS {
        check_add(function(load(image), c"add"));
    }
    let mut module = 0_u64;
    assert_eq!(call!(cuModuleLoadData(&raw mut module, MACHINE_CODE.as_ptr())), NO_BINARY);
    assert_eq!(call!(cuModuleLoadData(&raw mut module, c"\x7fELF\x02\x01\x01".as_ptr())), NO_BINARY);
    assert_eq!(call!(cuModuleLoadData(&raw mut module, null::<u8>())), INVALID_VALUE);
}

#[test]
fn a_module_has_functions_variables_and_attributes() {
    let _context = Context::new();
    let module = load(FATBINS[0]);
    let (mut count, mut found) = (0_u32, [0_u64; 2]);
    ok!(cuModuleGetFunctionCount(&raw mut count, module));
    ok!(cuModuleEnumerateFunctions(found.as_mut_ptr(), 2_u32, module));
    assert_eq!((count, found), (1, [function(module, c"add"), 0]));
    let mut name = null::<c_char>();
    ok!(cuFuncGetName(&raw mut name, found[0]));
    // SAFETY: the name lives as long as the module.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"add");
    let (mut address, mut bytes) = (0_u64, 0_usize);
    ok!(cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, c"counter".as_ptr()));
    assert_eq!((bytes, download(address, 1)), (4, vec![5]));
    let (mut offset, mut size) = (0_usize, 0_usize);
    ok!(cuFuncGetParamInfo(found[0], 1_usize, &raw mut offset, &raw mut size));
    assert_eq!((offset, size), (8, 4));
    assert_eq!(call!(cuFuncGetParamInfo(found[0], 2_usize, &raw mut offset, &raw mut size)), INVALID_VALUE);
    // The most threads, shared bytes, PTX, machine code, and dynamic shared bytes.
    for (attribute, expected) in [(0, 256), (1, 0), (5, 80), (6, 90), (8, 48 << 10), (9, -1)] {
        let mut value = 0_i32;
        ok!(cuFuncGetAttribute(&raw mut value, attribute, found[0]));
        assert_eq!(value, expected, "{attribute}");
    }
    ok!(cuFuncSetAttribute(found[0], 8, 100 << 10));
    for (attribute, value) in [(8, 300 << 10), (8, -1), (9, 101), (0, 1), (99, 0)] {
        assert_eq!(call!(cuFuncSetAttribute(found[0], attribute, value)), INVALID_VALUE, "{attribute}");
    }
    assert_eq!(call!(cuModuleGetFunction(&raw mut address, module, c"none".as_ptr())), NOT_FOUND);
    ok!(cuModuleUnload(module));
    assert_eq!(call!(cuModuleUnload(module)), INVALID_HANDLE);
    assert_eq!(launch(found[0], 1, 0, &mut []), INVALID_HANDLE);
}

#[test]
fn the_log_says_why_ptx_is_refused() {
    let _context = Context::new();
    let (mut log, mut module) = ([1_u8; 64], 0_u64);
    let kinds = [5_u32, 6];
    for (text, why) in [
        (c".version 8.0\n.target sm_80\n.address_size 64\n.entry k( {", "PTX line 4"),
        (c".version 8.0\n.target sm_120\n.address_size 64\n", "the PTX is for sm_120"),
    ] {
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
        let code =
            call!(cuModuleLoadDataEx(&raw mut module, text.as_ptr(), 2_u32, kinds.as_ptr(), values.as_mut_ptr()));
        let told = CStr::from_bytes_until_nul(&log).expect("it ends").to_string_lossy();
        assert!(code == INVALID_PTX && told.starts_with(why), "{code}: {told}");
        assert_eq!(values[1].addr(), told.len());
    }
    assert_eq!(
        call!(cuModuleLoadDataEx(&raw mut module, CALLEE.as_ptr(), 1_u32, [99_u32].as_ptr(), kinds.as_ptr())),
        INVALID_VALUE
    );
}

#[test]
fn files_load_and_missing_ones_are_named() {
    let _context = Context::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        let path = folder.path().join(name);
        std::ffi::CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
    };
    std::fs::write(folder.path().join("a.fatbin"), FATBINS[2]).expect("writable");
    let mut module = 0_u64;
    ok!(cuModuleLoad(&raw mut module, path("a.fatbin").as_ptr()));
    check_add(function(module, c"add"));
    assert_eq!(call!(cuModuleLoad(&raw mut module, path("b.fatbin").as_ptr())), NO_FILE);
    assert_eq!(call!(cuModuleLoad(&raw mut module, path("").as_ptr())), NO_FILE);
}

/// nvcc's generated code passes a container, or a list of containers.
#[test]
fn the_wrappers_of_nvcc_load() {
    let _context = Context::new();
    let empty = [0xBA55_ED50_u32, 0x10_0001, 0, 0];
    let list = [MACHINE_CODE.as_ptr(), FATBINS[1].as_ptr(), null()];
    let wrapper = |version: u64, data: *const u8, others: *const c_void| {
        [0x4662_43B1 | version << 32, data.addr() as u64, others.addr() as u64]
    };
    let empty_data = empty.as_ptr().cast::<u8>();
    for (wrapper, expected) in [
        (wrapper(1, FATBINS[0].as_ptr(), null()), 0),
        (wrapper(2, empty_data, list.as_ptr().cast()), 0),
        (wrapper(2, empty_data, null()), NO_BINARY),
        (wrapper(1, null(), null()), INVALID_VALUE),
    ] {
        let (code, library) = load_library(wrapper.as_ptr().cast());
        assert_eq!(code, expected, "{wrapper:x?}");
        if code == 0 {
            let mut kernel = 0_u64;
            ok!(cuLibraryGetKernel(&raw mut kernel, library, c"add".as_ptr()));
            check_add(kernel);
        }
    }
}

#[test]
fn a_library_is_loaded_into_each_context() {
    let _context = Context::new();
    let (code, library) = load_library(FATBINS[2].as_ptr());
    assert_eq!(code, 0);
    let (mut count, mut kernel) = (0_u32, [0_u64; 1]);
    ok!(cuLibraryGetKernelCount(&raw mut count, library));
    ok!(cuLibraryEnumerateKernels(kernel.as_mut_ptr(), 1_u32, library));
    assert_eq!(count, 1);
    ok!(cuKernelSetAttribute(8, 64 << 10, kernel[0], 0));
    let (mut functions, mut addresses, mut context) = ([0_u64; 2], [0_u64; 2], 0_u64);
    for number in 0..2 {
        if number == 1 {
            ok!(cuCtxCreate_v2(&raw mut context, 0, 0));
        }
        ok!(cuKernelGetFunction(&raw mut functions[number], kernel[0]));
        ok!(cuLibraryGetGlobal(&raw mut addresses[number], null_mut::<usize>(), library, c"counter".as_ptr()));
        let mut allowed = 0_i32;
        ok!(cuFuncGetAttribute(&raw mut allowed, 8, functions[number]));
        assert_eq!(allowed, 64 << 10);
        check_add(kernel[0]);
    }
    assert!(functions[0] != functions[1] && addresses[0] != addresses[1]);
    ok!(cuCtxDestroy_v2(context));
    assert_eq!(launch(functions[1], 1, 0, &mut []), INVALID_HANDLE);
    ok!(cuLibraryUnload(library));
    assert_eq!(call!(cuLibraryUnload(library)), INVALID_HANDLE);
    for stale in [kernel[0], functions[0]] {
        assert_eq!(launch(stale, 1, 0, &mut []), INVALID_HANDLE);
    }
}

#[test]
fn the_linker_joins_texts_whose_own_names_clash() {
    let _context = Context::new();
    let (mut link, mut image, mut bytes) = (0_u64, null::<u8>(), 0_usize);
    let (none, no_values) = (null::<u32>(), null_mut::<c_void>());
    let add = |link: u64, kind: u32, data: &[u8]| {
        call!(cuLinkAddData_v2(link, kind, data.as_ptr(), data.len(), c"a.ptx".as_ptr(), 0_u32, none, no_values))
    };
    ok!(cuLinkCreate_v2(0_u32, none, no_values, &raw mut link));
    assert_eq!(call!(cuLinkComplete(link, &raw mut image, &raw mut bytes)), INVALID_VALUE);
    assert_eq!((add(link, 1, CALLER), add(link, 1, CALLEE)), (0, 0));
    assert_eq!(
        [0, 3, 5, 9].map(|kind| add(link, kind, CALLER)),
        [NO_BINARY, NOT_SUPPORTED, NOT_SUPPORTED, INVALID_VALUE]
    );
    ok!(cuLinkComplete(link, &raw mut image, &raw mut bytes));
    let mut module = 0_u64;
    ok!(cuModuleLoadData(&raw mut module, image));
    ok!(cuLinkDestroy(link));
    assert_eq!(call!(cuLinkDestroy(link)), INVALID_HANDLE);
    let out = upload(&[0; 3]);
    assert_eq!(launch(function(module, c"k"), 3, 0, &mut [out]), 0);
    assert_eq!(download(out, 3), [0, 3, 6]);
}

#[test]
fn a_name_that_two_texts_define_is_an_error_of_the_linker() {
    let _context = Context::new();
    let (mut link, mut image, mut log) = (0_u64, null::<u8>(), [0_u8; 256]);
    let kinds = [5_u32, 6];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
    ok!(cuLinkCreate_v2(2_u32, kinds.as_ptr(), values.as_mut_ptr(), &raw mut link));
    for _ in 0..2 {
        let (none, no_values) = (null::<u32>(), null_mut::<c_void>());
        ok!(cuLinkAddData_v2(link, 1, CALLEE.as_ptr(), CALLEE.len(), null::<c_char>(), 0_u32, none, no_values));
    }
    assert_eq!(call!(cuLinkComplete(link, &raw mut image, null_mut::<usize>())), INVALID_PTX);
    let told = CStr::from_bytes_until_nul(&log).expect("it ends").to_string_lossy();
    assert!(told.contains("\"scaled\" is defined in input 0 and in input 1"), "{told}");
}

/// Threads load, launch and unload at the same time, with handles that others have ended.
#[test]
fn threads_use_and_end_each_others_handles() {
    let context = Context::new();
    let shared = std::sync::Mutex::new(vec![0_u64]);
    let some = |number: usize| {
        let known = shared.lock().expect("no panic");
        known[number % known.len()]
    };
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (shared, some, context) = (&shared, &some, context.handle);
            scope.spawn(move || {
                ok!(cuCtxSetCurrent(context));
                for step in 0..40_usize {
                    let (code, library) = load_library(FATBINS[step % 4].as_ptr());
                    assert_eq!(code, 0);
                    let (mut kernel, mut function) = (0_u64, 0_u64);
                    ok!(cuLibraryGetKernel(&raw mut kernel, library, c"add".as_ptr()));
                    let module = load(FATBINS[0]);
                    call!(cuKernelGetFunction(&raw mut function, some(step * 7 + thread)));
                    shared.lock().expect("no panic").extend([library, kernel, module, function]);
                    for number in 0..6 {
                        let handle = some(step * 13 + number * 5 + thread);
                        call!(cuKernelSetAttribute(8, 1024, handle, 0));
                        launch(handle, 32, 0, &mut [0, 0]);
                        call!(cuFuncLoad(handle));
                        if number == thread {
                            call!(cuLibraryUnload(handle));
                            call!(cuModuleUnload(handle));
                        }
                    }
                }
            });
        }
    });
    check_add(function(load(FATBINS[0]), c"add"));
}

/// nvcc of today writes what the library reads.
#[test]
fn what_nvcc_writes_loads() {
    let python = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools/python");
    let versions = std::fs::read_dir(python.join("lib")).into_iter().flatten().flatten();
    let nvcc =
        versions.map(|version| version.path().join("site-packages/nvidia/cu13/bin/nvcc")).find(|nvcc| nvcc.exists());
    let Some(nvcc) = nvcc.filter(|_| Command::new("g++").arg("--version").output().is_ok()) else {
        return missing("nvcc");
    };
    let _context = Context::new();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("add.fatbin");
    for mode in ["default", "size", "speed", "balance", "none"] {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fatbin.cu");
        let mut command = Command::new(&nvcc);
        command.args(["-fatbin", "-arch=compute_80", "--compress-mode", mode, source, "-o"]).arg(&out);
        assert!(command.status().expect("it runs").success());
        check_add(function(load(&std::fs::read(&out).expect("readable")), c"add"));
    }
}

#[test]
fn the_host_uses_a_managed_variable_at_the_same_address() {
    const TEXT: &[u8] = b".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .global .attribute(.managed) .align 4 .u32 count = 5;\n.global .align 4 .u32 other;\n\
        .visible .entry k() { .reg .b32 %r<3>; ld.global.u32 %r1, [count]; add.u32 %r2, %r1, 10; \
        st.global.u32 [count], %r2; ret; }\0";
    let _context = Context::new();
    let (code, library) = load_library(TEXT.as_ptr());
    assert_eq!(code, 0);
    let (mut address, mut bytes, mut kernel) = (0_u64, 0_usize, 0_u64);
    assert_eq!(call!(cuLibraryGetManaged(&raw mut address, &raw mut bytes, library, c"other".as_ptr())), NOT_FOUND);
    ok!(cuLibraryGetManaged(&raw mut address, &raw mut bytes, library, c"count".as_ptr()));
    assert_eq!(bytes, 4);
    let count = std::ptr::with_exposed_provenance_mut::<u32>(address as usize);
    // SAFETY: the variable is memory of the host, which nothing else uses now.
    let first = unsafe { count.read_volatile() };
    assert_eq!(first, 5);
    // SAFETY: as above.
    unsafe { count.write_volatile(6) };
    ok!(cuLibraryGetKernel(&raw mut kernel, library, c"k".as_ptr()));
    assert_eq!(launch(kernel, 1, 0, &mut []), 0);
    ok!(cuCtxSynchronize());
    // SAFETY: as above, since the launch has ended.
    let last = unsafe { count.read_volatile() };
    assert_eq!(last, 16);
    ok!(cuLibraryUnload(library));
}
