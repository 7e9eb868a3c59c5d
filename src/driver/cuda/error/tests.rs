use super::*;

#[test]
fn each_kind_of_failure_has_its_codes_and_some_are_sticky() {
    use ErrorKind::{Driver, DriverTooOld, InvalidArgument, KernelFault, OutOfMemory, UnsupportedPtx};

    for (kind, is_sticky, said, codes) in [
        (KernelFault, true, "", &[code::ILLEGAL_ADDRESS, 715, 716, 717, 718, code::LAUNCH_FAILED][..]),
        (Driver, true, "hardware", &[code::ECC_UNCORRECTABLE, code::NVLINK_UNCORRECTABLE, code::CONTAINED]),
        (Driver, false, "cuMemAlloc(1 byte): CUDA error 4242; look the code up", &[4242]),
        (Driver, false, "", &[code::NOT_READY]),
        (InvalidArgument, false, "", &[code::INVALID_VALUE]),
        (InvalidArgument, false, "make the plan for this device (`Target::of`)", &[720]),
        (OutOfMemory, false, "", &[code::OUT_OF_MEMORY]),
        (DriverTooOld, false, "", &[code::UNSUPPORTED_PTX_VERSION]),
        (UnsupportedPtx, false, "", &[code::INVALID_PTX, code::NO_BINARY_FOR_GPU]),
    ] {
        for &code in codes {
            let error = error(code, "cuMemAlloc(1 byte)", "CUDA error 4242");
            assert_eq!((error.kind(), super::is_sticky(code)), (kind, is_sticky), "{code}");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
