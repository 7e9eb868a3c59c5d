//! Variables of a module that are filled before a launch, and shared memory beyond 48 KiB.

use super::{Folder, Run, npy, npy_with_header};

/// `out[i] = cells[i]` in four threads, and the bits of `scale` and the bytes of dynamic shared
/// memory behind them.
const PTX: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .const .align 4 .f32 scale = 0f3F800000;
    .visible .global .align 4 .u32 _ZN4math5cellsE[4] = {1, 2, 3, 4};
    .visible .entry read(.param .u64 out) {
        .reg .b32 %r<5>; .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
        mov.u64 %rd3, _ZN4math5cellsE; add.s64 %rd4, %rd3, %rd2; ld.global.u32 %r2, [%rd4];
        add.s64 %rd5, %rd1, %rd2; st.global.u32 [%rd5], %r2;
        ld.const.u32 %r3, [scale]; st.global.u32 [%rd1+16], %r3;
        mov.u32 %r4, %dynamic_smem_size; st.global.u32 [%rd1+20], %r4;
        ret;
    }";

impl Folder {
    fn read(&self, options: &str) -> Run {
        self.run(&format!("run-ptx k.ptx --grid 1 --block 4 --arg u32[6]=zeros --dump 0=out.npy {options}"))
    }

    /// The words that the kernel has read.
    #[track_caller]
    fn words_read(&self, options: &str) -> Vec<u32> {
        self.read(options).succeeded();
        let (_, bytes) = self.written();
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
    }
}

#[test]
fn a_variable_is_filled_before_the_launch() {
    let folder = Folder::with("k.ptx", PTX);
    let one = 1_f32.to_bits();
    assert_eq!(folder.words_read("--quiet"), [1, 2, 3, 4, one, 0]);
    assert_eq!(folder.words_read("--set scale=f32:2"), [1, 2, 3, 4, 2_f32.to_bits(), 0]);
    // Fewer bytes leave the others as they are, and a name may leave its namespace out.
    for name in ["cells", "math::cells", "_ZN4math5cellsE"] {
        assert_eq!(folder.words_read(&format!("--set {name}=u32[2]=iota")), [0, 1, 3, 4, one, 0], "{name}");
    }
    folder.write("cells.npy", npy("<u4", "(4,)", &[9, 0, 0, 0].repeat(4)));
    assert_eq!(folder.words_read("--set cells=npy:cells.npy --set scale=i32:7"), [9, 9, 9, 9, 7, 0]);
}

#[test]
fn bytes_after_an_array_are_left_out_with_a_note() {
    let folder = Folder::with("k.ptx", PTX);
    let twice = |count: usize| [npy("<u4", &format!("({count},)"), &[9, 0, 0, 0].repeat(count)), vec![7; 5]].concat();
    let said = |name: &str| format!("{name} has 5 bytes after its first array, which are left out");
    folder.write("cells.npy", twice(4));
    folder.read("--set cells=npy:cells.npy").ended(0, &[], &[&said("cells.npy")]);
    folder.write("six.npy", twice(6));
    let run = "run-ptx k.ptx --grid 1 --block 4 --arg npy:six.npy";
    folder.run(run).ended(0, &[], &[&said("six.npy")]);
    assert!(!folder.run(&format!("{run} --quiet")).succeeded().stderr.contains("after its first array"));
    let text = "kernel = \"k.ptx\"\ngrid = [1]\nblock = [4]\nargs = [\"npy:six.npy\"]\nset.cells = \"npy:cells.npy\"\n";
    folder.write("c.toml", format!("{text}result = {{ arg = 0, file = \"wanted.npy\" }}\n"));
    folder.write("wanted.npy", twice(6));
    folder.run("check c.toml").ended(1, &[], &[&said("six.npy"), &said("cells.npy"), &said("wanted.npy")]);
}

#[test]
fn a_value_without_a_place_is_refused() {
    let folder = Folder::with("k.ptx", PTX);
    folder.read("--set scales=f32:2").failed(&["k.ptx has no variable `scales`; it has scale, math::cells"]);
    folder.read("--set scale=f64:2").failed(&["--set scale=f64:2: the value has 8 bytes", "`scale` has 4 bytes"]);
    folder.read("--set cells=u32[5]=iota").failed(&["the value has 20 bytes", "`math::cells` has 16 bytes"]);
    folder.read("--set cells=npy:none.npy").failed(&["none.npy"]);
    folder.read("--set cells=u32:1 --set math::cells=u32:2").failed(&["`math::cells` has a value already"]);
    for wrong in ["scale", "=f32:2", "scale=2"] {
        folder.read(&format!("--set {wrong}")).ended(2, &[], &["--set"]);
    }
    // An output never replaces a value's file.
    folder.write("out.npy", npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", &[0; 4]));
    folder.read("--set scale=npy:out.npy").failed(&["input and output are the same file"]);
}

#[test]
fn a_check_fills_variables() {
    let folder = Folder::with("k.ptx", PTX);
    let check = |lines: &str| {
        let text = "kernel = \"k.ptx\"\ngrid = [1]\nblock = [4]\nargs = [\"u32[6]=zeros\"]\n";
        folder.write("c.toml", format!("{text}{lines}\n"));
        folder.run("check c.toml")
    };
    let wanted = "result = { arg = 0, file = \"expected.npy\" }";
    let words = [9_u32, 9, 9, 9, 2_f32.to_bits(), 65536].map(u32::to_le_bytes).concat();
    folder.write("expected.npy", npy("<u4", "(6,)", &words));
    folder.write("cells.npy", npy("<u4", "(4,)", &[9, 0, 0, 0].repeat(4)));
    let set = "set = { \"math::cells\" = \"npy:cells.npy\", scale = \"f32:2\" }\nshared = 65536\n";
    check(&format!("{set}{wanted}")).succeeded();
    check(&format!("set = {{ other = \"f32:2\" }}\n{wanted}"))
        .failed(&["c.toml: `set` other: ", "has no variable `other`; it has scale, math::cells"]);
    check(&format!("set = {{ scale = \"f33:2\" }}\n{wanted}")).failed(&["c.toml line 5, `set`: ", "`f33`"]);
    check(&format!("set = 1\n{wanted}")).failed(&["c.toml line 5, `set`"]);
    check(&format!("arch = \"90\"\n{wanted}")).failed(&["c.toml line 5, `arch`: give an architecture such as sm_90"]);
}

#[test]
fn shared_memory_has_the_architectures_limit() {
    let folder = Folder::with("k.ptx", PTX);
    let note = "cudaFuncSetAttribute(read, cudaFuncAttributeMaxDynamicSharedMemorySize, ";
    let quiet = folder.read("--shared 49152").succeeded();
    assert!(!quiet.stderr.contains(note), "{}", quiet.stderr);
    for (options, bytes) in
        [("--shared 65536", 65536), ("--shared 166912", 166_912), ("--shared 232448 --arch sm_90", 232_448)]
    {
        folder.read(options).ended(0, &[], &[note, &format!("{bytes})")]);
        assert_eq!(folder.words_read(options)[5], bytes);
    }
    folder.read("--shared 166913 --quiet").failed(&["166913 bytes of shared memory", "166912 on sm_80"]);
    folder.read("--shared 65537 --arch sm_75 --quiet").failed(&["65537 bytes of shared memory", "65536 on sm_75"]);
    assert_eq!(folder.words_read("--shared 232448 --arch sm_90a")[5], 232_448);
    for wrong in ["90", "sm_", "sm_9", "sm_1000", "sm_90b", "sm_90af", "sm_a"] {
        folder.read(&format!("--arch {wrong}")).ended(2, &[], &["give an architecture such as sm_90"]);
    }
}
