//! Devices: their attributes, and which of them a program sees.

use std::ffi::{CStr, c_char, c_int};

use crate::api::declare;
use crate::child::{in_child, is_child};

/// Results, as `cuda.h` numbers them.
const SUCCESS: u32 = 0;
const INVALID_VALUE: u32 = 1;
const NO_DEVICE: u32 = 100;
const INVALID_DEVICE: u32 = 101;

declare! {
    fn cuInit(flags: u32);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGetAttribute(value: *mut c_int, number: u32, device: c_int);
    fn cuDeviceGetName(name: *mut c_char, room: c_int, device: c_int);
    fn cuDeviceGetPCIBusId(place: *mut c_char, room: c_int, device: c_int);
    fn cuDeviceGetByPCIBusId(device: *mut c_int, place: *const c_char);
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int);
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
    fn cuDeviceGetP2PAttribute(value: *mut c_int, number: u32, device: c_int, peer: c_int);
}

/// Returns an attribute, or the result that is not success.
fn attribute(number: u32, device: c_int) -> Result<c_int, u32> {
    let mut value = -5;
    match cuDeviceGetAttribute(&mut value, number, device) {
        SUCCESS => Ok(value),
        other => Err(other),
    }
}

fn text(fill: impl FnOnce(*mut c_char, c_int) -> u32) -> String {
    let mut buffer = [0; 100];
    assert_eq!(fill(buffer.as_mut_ptr(), 100), SUCCESS);
    // SAFETY: the buffer ends in NUL, since it is longer than the text.
    unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_string_lossy().into_owned()
}

fn name(device: c_int) -> String {
    text(|buffer, room| cuDeviceGetName(buffer, room, device))
}

fn place(device: c_int) -> String {
    text(|buffer, room| cuDeviceGetPCIBusId(buffer, room, device))
}

fn uuid(device: c_int) -> [u8; 16] {
    let mut uuid = [0; 16];
    assert_eq!(cuDeviceGetUuid_v2(&mut uuid, device), SUCCESS);
    uuid
}

/// Returns the numbers of the devices that the program sees among those of the host, or the result
/// of `cuInit`.
fn seen() -> Result<Vec<u8>, u32> {
    let mut count = 0;
    match cuInit(0) {
        SUCCESS => assert_eq!(cuDeviceGetCount(&mut count), SUCCESS),
        other => return Err(other),
    }
    Ok((0..count).map(|device| uuid(device)[15]).collect())
}

#[test]
fn a_program_sees_the_devices_that_a_variable_lists() {
    const THIS: &str = "device::a_program_sees_the_devices_that_a_variable_lists";
    if is_child() {
        println!("sees {:?}", seen());
        return;
    }
    let of_one = "GPU-77617270-7374-7269-6465-000000000001";
    for (list, sees) in [
        ("0,1,2,3", Ok(vec![0, 1, 2, 3])),
        (" 3 , 1", Ok(vec![3, 1])),
        (of_one, Ok(vec![1])),
        (&format!("2,{}", of_one.to_uppercase()), Ok(vec![2, 1])),
        ("2,9,1", Ok(vec![2])),
        ("1,-1,2", Ok(vec![1])),
        // The beginning of all UUIDs.
        ("GPU-77", Err(NO_DEVICE)),
        ("1,1", Err(NO_DEVICE)),
        ("-1", Err(NO_DEVICE)),
        ("", Err(NO_DEVICE)),
        ("99999999999999999999", Err(NO_DEVICE)),
    ] {
        let told = in_child(THIS, &[("WARPSTRIDE_RUN_GPUS", "4"), ("CUDA_VISIBLE_DEVICES", list)]);
        assert!(told.contains(&format!("sees {sees:?}")), "{list}: {told}");
    }
}

#[test]
fn a_device_is_told_from_others_and_from_real_ones() {
    const THIS: &str = "device::a_device_is_told_from_others_and_from_real_ones";
    if !is_child() {
        in_child(THIS, &[("WARPSTRIDE_RUN_GPUS", "3"), ("CUDA_VISIBLE_DEVICES", "2,0")]);
        return;
    }
    assert_eq!(seen(), Ok(vec![2, 0]));
    assert_eq!(name(0), "warpstride software GPU (NVIDIA H100 80GB HBM3)");
    for (device, expected) in [(0, "5753:03:00.0"), (1, "5753:01:00.0")] {
        assert_eq!(place(device), expected);
        for text in [c"5753:03:00.0", c"5753:3:0"].iter().filter(|_| device == 0) {
            let mut found = -1;
            let result = cuDeviceGetByPCIBusId(&mut found, text.as_ptr());
            assert_eq!((result, found), (SUCCESS, device));
        }
    }
    let mut found = -1;
    for (text, code) in [(c"03:00.0", INVALID_DEVICE), (c"0:0:0:0:0", INVALID_VALUE), (c"GPU", INVALID_VALUE)] {
        let result = cuDeviceGetByPCIBusId(&mut found, text.as_ptr());
        assert_eq!(result, code, "{text:?}");
    }
    let mut can = -1;
    for (device, peer, expected) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
        let result = cuDeviceCanAccessPeer(&mut can, device, peer);
        assert_eq!((result, can), (SUCCESS, expected));
    }
    assert_eq!(cuDeviceCanAccessPeer(&mut can, 0, 2), INVALID_DEVICE);
    let peers = |number, peer| {
        let mut value = -1;
        let result = cuDeviceGetP2PAttribute(&mut value, number, 0, peer);
        (result, value)
    };
    assert_eq!([peers(1, 1), peers(2, 1), peers(3, 1), peers(4, 1)], [0, 1, 1, 0].map(|value| (SUCCESS, value)));
    assert_eq!([peers(0, 1).0, peers(9, 1).0, peers(2, 0).0], [INVALID_VALUE, INVALID_VALUE, INVALID_DEVICE]);
}

#[test]
fn attributes_are_those_of_the_model() {
    const THIS: &str = "device::attributes_are_those_of_the_model";
    // The numbers are those of `CUdevice_attribute`: multiprocessors, threads and shared memory of
    // each, shared memory of a block, blocks, the memory's clock and bus, and the compute
    // capability.
    const ASKED: [u32; 9] = [16, 39, 81, 97, 106, 36, 37, 75, 76];
    if is_child() {
        assert_eq!(seen(), Ok(vec![0]));
        println!("attributes {:?}", ASKED.map(|number| attribute(number, 0).unwrap()));
        assert!((1..=147).all(|number| attribute(number, 0).is_ok()));
        for (number, device, code) in [(0, 0, INVALID_VALUE), (148, 0, INVALID_VALUE), (16, 1, INVALID_DEVICE)] {
            assert_eq!(attribute(number, device), Err(code));
        }
        return;
    }
    for (model, attributes) in [
        ("h100", [132, 2048, 233_472, 232_448, 32, 2_619_000, 5120, 9, 0]),
        ("h200", [132, 2048, 233_472, 232_448, 32, 3_201_000, 6016, 9, 0]),
        ("a100", [108, 2048, 167_936, 166_912, 32, 1_593_000, 5120, 8, 0]),
        ("l4", [58, 1536, 102_400, 101_376, 24, 6_251_000, 192, 8, 9]),
        ("t4", [40, 1024, 65_536, 65_536, 16, 5_001_000, 256, 7, 5]),
        ("rtx4090", [128, 1536, 102_400, 101_376, 24, 10_501_000, 384, 8, 9]),
    ] {
        let told = in_child(THIS, &[("WARPSTRIDE_RUN_MODEL", model)]);
        assert!(told.contains(&format!("attributes {attributes:?}")), "{model}: {told}");
    }
}

#[test]
fn a_text_is_cut_to_its_buffer() {
    const THIS: &str = "device::a_text_is_cut_to_its_buffer";
    if !is_child() {
        in_child(THIS, &[]);
        return;
    }
    assert_eq!(seen(), Ok(vec![0]));
    let mut buffer = [1; 5];
    assert_eq!(cuDeviceGetName(buffer.as_mut_ptr(), 4, 0), SUCCESS);
    assert_eq!(buffer.map(|byte| byte as u8), *b"war\0\x01");
    for room in [0, -1, c_int::MIN] {
        let result = cuDeviceGetName(buffer.as_mut_ptr(), room, 0);
        assert_eq!(result, INVALID_VALUE);
    }
    let null = std::ptr::null_mut();
    assert_eq!(cuDeviceGetName(null, 4, 0), INVALID_VALUE);
    assert_eq!(cuDeviceGetPCIBusId(buffer.as_mut_ptr(), 5, 0), INVALID_VALUE);
}
