//! Calls that no program should make: each returns a code, and says why.

use std::ffi::{CString, c_int, c_void};
use std::process::Command;
use std::ptr::{null, null_mut};

use crate::api::{address, kernel, launch, ptx_run, store_7};
use crate::launches::Pages;

/// Set in a process that makes the calls.
const CHILD: &str = "WARPSTRIDE_TEST_CHILD";

/// Makes a call with a valid text and other operands.
fn with(count: c_int, arguments: *const *mut c_void, block: [c_int; 3], grid: [c_int; 3], shared: c_int) -> c_int {
    let source = CString::new(store_7()).expect("a text without NUL");
    ptx_run(source.as_ptr(), count, arguments, block, grid, shared)
}

/// Makes each call, and checks its code.
fn make_the_calls() {
    let one = [1; 3];
    let mut word = [0_u32; 2];
    let arguments = [word.as_mut_ptr().cast::<c_void>()];
    let list = arguments.as_ptr();
    assert_eq!(ptx_run(null(), 1, list, one, one, 0), 1);
    assert_eq!(with(1, null(), one, one, 0), 1);
    for count in [-1, 0, 2, c_int::MIN, c_int::MAX] {
        assert_eq!(with(count, list, one, one, 0), 1);
    }
    for extent in [0, -1, c_int::MIN, c_int::MAX] {
        for axis in 0..3 {
            let mut wrong = one;
            wrong[axis] = extent;
            assert_eq!(with(1, list, wrong, one, 0), 1);
            if extent != c_int::MAX {
                assert_eq!(with(1, list, one, wrong, 0), 1);
            }
        }
    }
    for grid in [[1, c_int::MAX, 1], [1, 1, c_int::MAX]] {
        assert_eq!(with(1, list, one, grid, 0), 1);
    }
    assert_eq!(with(1, list, one, [c_int::MAX, 1, 1], 0), 702);
    for shared in [-1, c_int::MIN, c_int::MAX] {
        assert_eq!(with(1, list, one, one, shared), 1);
    }
    let place = address(&mut word);
    assert_eq!(word, [0; 2]);
    assert_eq!(launch("", &[place], 1, 1, 0), 500);
    assert_eq!(launch("int main() { return 0; }", &[place], 1, 1, 0), 218);
    assert_eq!(launch(&store_7().replace("st.global", "st.nowhere"), &[place], 1, 1, 0), 218);
    assert_eq!(launch(&" ".repeat((16 << 20) + 1), &[place], 1, 1, 0), 218);
    let two = store_7() + ".visible .entry another() { ret; }";
    assert_eq!(launch(&two, &[place], 1, 1, 0), 1);
    assert_eq!(launch(&kernel(".param .b8 wide[24]", ""), &[place], 1, 1, 0), 1);
    assert_eq!(launch(&kernel("", "trap;"), &[], 1, 1, 0), 719);
    assert_eq!(launch(&kernel("", "forever:\nbra forever;"), &[], 1, 1, 0), 702);

    let pages = Pages::new(0, 1);
    let strays =
        [(pages.end(), 700), (pages.end() - 6, 716), (pages.begin() - 4, 700), (0, 700), (7, 700), (u64::MAX - 3, 700)];
    for (address, code) in strays {
        assert_eq!(launch(&store_7(), &[address], 1, 1, 0), code, "{address:#x}");
    }
    let beyond = store_7().replace("[%d1]", "[%d1+4096]");
    assert_eq!(launch(&beyond, &[pages.begin()], 1, 1, 0), 700);
    let text = "a text of the program, which nothing can write";
    assert_eq!(launch(&store_7(), &[text.as_ptr().addr() as u64 / 4 * 4], 1, 1, 0), 700);
    assert_eq!(launch(&store_7(), &[place], 1, 1, 0), 0);
    assert_eq!(word[0], 7);
    assert_eq!(with(1, [null_mut()].as_ptr(), one, one, 0), 700);
}

#[test]
fn a_call_that_cannot_be_right_returns_a_code_and_says_why() {
    if std::env::var_os(CHILD).is_some() {
        return make_the_calls();
    }
    let this = "refusals::a_call_that_cannot_be_right_returns_a_code_and_says_why";
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let child = command.args(["--exact", this, "--nocapture"]).env(CHILD, "1").output().expect("a process");
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{}:\n{told}", child.status);
    for why in [
        "the PTX is null; pass the address of a text",
        "the list of 1 argument is null; pass the address",
        "kernel \"k\" has 1 parameter and the call passes -1; pass a value for each",
        "a block of -1 x 1 x 1 is empty; each extent is at least 1",
        "a grid of 1 x 0 x 1 is empty",
        "-1 is not a number of bytes of dynamic shared memory",
        "the PTX has no kernel; pass a text with one `.entry`",
        "such as \"k\" and \"another\", and the call names none",
        "argument 0 of 1, counted from 0 (24 bytes), \"wide\" of kernel \"k\" is wider than a pointer",
        "out of bounds; check the extents and strides that were passed; kernels can use the ranges of memory",
    ] {
        assert!(told.contains(why), "{why}\n{told}");
    }
    assert!(told.lines().filter(|line| line.starts_with("ptx_run: ")).count() > 30, "{told}");
    assert!(!told.contains("the software GPU panicked"), "{told}");
}
