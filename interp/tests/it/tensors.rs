//! Boxes of tensors: `cp.async.bulk.tensor` against a plain model on the host.

use warpstride_interp::tensor_map::{Element, TensorMap};
use warpstride_interp::{Checks, Config, Memory, Module, Stop, run};

use super::shape;

/// Bytes of shared memory that the kernels show.
const TILE: usize = 4096;
/// The types of elements that the tests use: bytes, halves, f32 and f64.
const U8: u32 = 0;
const F16: u32 = 6;
const F32: u32 = 7;
const F64: u32 = 8;

/// A tensor of these extents, packed with rows of a multiple of 16 bytes, and its boxes.
fn map(element: u32, extents: &[u64], boxes: &[u32]) -> TensorMap {
    let element = Element::new(element).expect("a type");
    let mut strides = vec![(extents[0] * u64::from(element.bytes())).next_multiple_of(16)];
    for extent in &extents[1..] {
        strides.push(strides.last().unwrap() * extent);
    }
    strides.truncate(extents.len() - 1);
    let (boxes, steps) = (boxes.to_vec(), vec![1; extents.len()]);
    TensorMap {
        address: 0,
        element,
        extents: extents.to_vec(),
        strides,
        boxes,
        steps,
        swizzle: 0,
        fills_with_nan: false,
    }
}

fn span(map: &TensorMap) -> usize {
    let row = map.extents[0] * u64::from(map.element.bytes());
    let far: u64 = map.extents[1..].iter().zip(&map.strides).map(|(extent, stride)| (extent - 1) * stride).sum();
    (far + row) as usize
}

/// Calls with the place in shared memory of each byte of a box, and its place in the tensor, if it
/// is within.
fn visit(map: &TensorMap, at: &[i32], mut each: impl FnMut(usize, Option<usize>)) {
    let width = i64::from(map.element.bytes());
    let counts: Vec<u32> =
        (0..at.len()).map(|d| if d == 0 { map.boxes[0] } else { map.boxes[d].div_ceil(map.steps[d]) }).collect();
    let row = i64::from(counts[0]) * width;
    let pitch = if map.swizzle == 0 { row } else { i64::from(map.swizzle) };
    for index in 0..counts.iter().map(|&count| i64::from(count)).product::<i64>() {
        let (mut rest, mut inside, mut place) = (index, true, 0);
        for d in 0..at.len() {
            let within = rest % i64::from(counts[d]);
            rest /= i64::from(counts[d]);
            let coordinate = i64::from(at[d]) + within * if d == 0 { 1 } else { i64::from(map.steps[d]) };
            inside &= (0..map.extents[d] as i64).contains(&coordinate);
            place += coordinate * if d == 0 { width } else { map.strides[d - 1] as i64 };
        }
        let shared = index / i64::from(counts[0]) * pitch + index % i64::from(counts[0]) * width;
        let mask = match map.swizzle {
            128 => 7,
            64 => 3,
            32 => 1,
            _ => 0,
        };
        let swizzled = shared ^ (((shared / 128) & mask) * 16);
        (0..width).for_each(|byte| each((swizzled + byte) as usize, inside.then_some((place + byte) as usize)));
    }
}

/// A kernel of one warp, whose thread 0 does `body` with `tile` of shared memory, `bar`, the
/// coordinates `%c0` and so on, and the map at `%map`. Bytes of `tile` begin as 0xee, and end in
/// `q`.
fn kernel(at: &[i32], map: &str, body: &str) -> String {
    let coordinates: String = at.iter().enumerate().map(|(d, at)| format!("mov.b32 %c{d}, {at};\n")).collect();
    format!(
        ".version 8.0 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 p, .param .u64 q, .param .align 64 .b8 m[128]) {{
            .reg .pred %p<3>; .reg .b32 %r<5>, %c<5>; .reg .b64 %rd<5>, %map, %from, %to;
            .shared .align 1024 .b8 tile[{TILE}]; .shared .align 8 .b64 bar;
            {coordinates} {map}
            mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; ld.param.u64 %from, [p]; ld.param.u64 %to, [q];
            mov.u32 %r2, 0xeeeeeeee; shl.b32 %r3, %r1, 2;
            clear: st.shared.u32 [%r3], %r2; add.u32 %r3, %r3, 128; setp.lt.u32 %p2, %r3, {TILE}; @%p2 bra clear;
            @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
            {body}
            shl.b32 %r3, %r1, 2;
            show: ld.shared.u32 %r2, [%r3]; cvt.u64.u32 %rd1, %r3; add.u64 %rd1, %to, %rd1; st.global.u32 [%rd1], %r2;
            add.u32 %r3, %r3, 128; setp.lt.u32 %p2, %r3, {TILE}; @%p2 bra show;
            ret;
        }}"
    )
}

const OF_PARAM: &str = "mov.b64 %map, m; cvta.param.u64 %map, %map; prefetch.tensormap [%map];";

/// The coordinates as the instructions list them.
fn list(at: &[i32]) -> String {
    (0..at.len()).map(|d| format!("%c{d}")).collect::<Vec<_>>().join(", ")
}

fn load(at: &[i32], bytes: usize) -> String {
    format!(
        "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};
        @%p1 cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%map, {{{}}}], [bar];
        wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra wait;",
        at.len(),
        list(at)
    )
}

fn store(at: &[i32]) -> String {
    format!(
        "@%p1 cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group [%map, {{{}}}], [tile];
        @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;",
        at.len(),
        list(at)
    )
}

/// Runs a kernel over a tensor of these bytes; returns those of the tensor and of the tile.
fn launch(map: &TensorMap, text: &str, tensor: &[u8], checks: Checks) -> Result<[Vec<u8>; 2], Box<Stop>> {
    let memory = Memory::new(1 << 22);
    let (from, to) = (memory.upload(tensor).unwrap(), memory.alloc(TILE as u64).unwrap());
    let map = TensorMap { address: from, ..map.clone() };
    let mut params: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
    params.resize(64, 0);
    params.extend(map.encode());
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let config = Config { checks, work_limit: 1 << 24, ..Config::default() };
    let report = run(module.kernel("k").unwrap(), &shape(1, 32), &params, &memory, &config)?;
    assert_eq!(report.findings, []);
    Ok([memory.download(from, tensor.len()).unwrap(), memory.download(to, TILE).unwrap()])
}

fn random(count: usize) -> Vec<u8> {
    (0..count as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

/// A tensor of bytes 0x11, which the bytes 0xee of a box change by the type of its elements.
#[test]
fn boxes_change_the_elements_of_a_tensor() {
    let reduce = |element: u32, change: &str, checks: Checks| {
        let map = map(element, &[16, 2], &[16, 2]);
        let body = store(&[0, 0])
            .replace("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
            .replace("shared::cta.tile", &format!("shared::cta.{change}.tile"));
        let text = kernel(&[0, 0], OF_PARAM, &body);
        launch(&map, &text, &vec![0x11; span(&map)], checks).map(|[tensor, _]| tensor)
    };
    for (element, change, expected) in [
        (2, "add", 0xff),
        (2, "min", 0x11),
        (3, "min", 0xee),
        (3, "max", 0x11),
        (4, "xor", 0xff),
        (5, "min", 0xee),
        (5, "and", 0),
        (F16, "max", 0x11),
        (9, "min", 0xee),
    ] {
        let tensor = reduce(element, change, Checks::ALL).unwrap_or_else(|stop| panic!("{stop}"));
        assert!(tensor.iter().all(|&byte| byte == expected), "{element} {change}: {tensor:x?}");
    }
    for (element, change) in [(F32, "min"), (F64, "add"), (U8, "or"), (3, "inc"), (F16, "xor")] {
        let stop = reduce(element, change, Checks::NONE).expect_err(change).to_string();
        assert!(stop.contains("a reduction that elements of its type do not have"), "{stop}");
    }
}

/// Loads and stores a box near a place, and compares both with the model.
#[track_caller]
fn agrees(map: &TensorMap, near: &[i32]) {
    assert_eq!(map.wrong(), None);
    let tensor = random(span(map));
    let nan = [0xf7, 0x7f];
    let mut at = near.to_vec();
    let unit = 16 / map.element.bytes() as i32;
    at[0] = at[0].div_euclid(unit) * unit;
    let at = &at[..];
    let (mut tile, mut bytes) = (vec![0xee; TILE], 0);
    let mut stored = tensor.clone();
    visit(map, at, |shared, place| {
        let fill = if map.fills_with_nan { nan[shared % nan.len()] } else { 0 };
        tile[shared] = place.map_or(fill, |place| tensor[place]);
        bytes += 1;
        if let Some(place) = place {
            stored[place] = 0xee;
        }
    });
    let what = format!("{map:?} at {at:?}");
    let [_, loaded] = launch(map, &kernel(at, OF_PARAM, &load(at, bytes)), &tensor, Checks::ALL)
        .unwrap_or_else(|stop| panic!("{stop} {what}"));
    assert!(loaded == tile, "{what}");
    let [out, _] = launch(map, &kernel(at, OF_PARAM, &store(at)), &tensor, Checks::ALL)
        .unwrap_or_else(|stop| panic!("{stop} {what}"));
    assert!(out == stored, "{what}");
}

#[test]
fn boxes_have_one_to_five_dimensions() {
    agrees(&map(F32, &[100], &[64]), &[20]);
    agrees(&map(F16, &[40, 30], &[16, 8]), &[8, 5]);
    agrees(&map(U8, &[48, 9, 7], &[32, 3, 4]), &[5, 2, 1]);
    agrees(&map(F32, &[10, 5, 4, 3], &[4, 2, 2, 2]), &[3, 1, 1, 0]);
    agrees(&map(F64, &[6, 4, 3, 3, 3], &[2, 2, 2, 2, 2]), &[1, 1, 1, 1, 1]);
}

#[test]
fn elements_outside_of_the_tensor_are_filled() {
    for at in [[-3, -2], [35, 28], [39, -7], [-16, 0], [40, 0], [0, 30], [i32::MAX, i32::MIN]] {
        let zeros = map(F16, &[40, 30], &[16, 8]);
        agrees(&zeros, &at);
        agrees(&TensorMap { fills_with_nan: true, ..zeros }, &at);
    }
    for element in [F32, F64] {
        agrees(&TensorMap { fills_with_nan: true, ..map(element, &[9, 5, 4], &[4, 3, 2]) }, &[7, 3, 3]);
    }
    agrees(&map(U8, &[33, 5], &[32, 4]), &[17, 3]);
}

/// The boxes of a tensor of 20 rows of 200 bytes, 256 bytes apart, that an H200 has loaded.
#[test]
fn boxes_have_the_bytes_that_an_h200_loads() {
    let tensor: Vec<u8> = (0..1_usize << 16).map(|at| (at * 7 + (at >> 8) * 13) as u8).collect();
    let mut compared = 0;
    for line in include_str!("../data/tensor-boxes-h200.txt").lines().filter(|line| !line.starts_with('#')) {
        let [kind, row, swizzle, filling, place, wanted] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let [row, swizzle, place] = [row, swizzle, place].map(|number| number.parse::<u32>().expect("a number"));
        let names = ["u8", "", "", "", "", "", "f16", "f32", "f64", "bf16", "f32ftz", "tf32"];
        let number = names.iter().position(|name| *name == kind).expect("a type") as u32;
        let width = Element::new(number).expect("a type").bytes();
        let boxed = map(number, &[u64::from(200 / width), 20], &[row / width, 9]);
        let swizzle = [0, 32, 64, 128][swizzle as usize];
        let boxed = TensorMap { strides: vec![256], swizzle, fills_with_nan: filling == "1", ..boxed };
        assert_eq!(boxed.wrong().is_some(), wanted == "refused", "{line}: {:?}", boxed.wrong());
        if wanted == "refused" {
            continue;
        }
        let first = [16, -16, 192 - (row / 32 * 16) as i32][place as usize] / width as i32;
        let at = [first, [1, -3, 15][place as usize]];
        let [_, tile] = launch(&boxed, &kernel(&at, OF_PARAM, &load(&at, row as usize * 9)), &tensor, Checks::NONE)
            .unwrap_or_else(|stop| panic!("{stop} {line}"));
        let bytes = tile.iter().copied().chain(std::iter::repeat(0xee)).take(8192);
        let hash =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        assert_eq!(format!("{hash:016x}"), wanted, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 702);
}

/// Bits that an H200 loads for elements of tf32.
#[test]
fn elements_of_tf32_are_rounded() {
    let pairs: [[u32; 2]; 12] = [
        [0x3f80_1000, 0x3f80_0000],
        [0x3f80_3000, 0x3f80_4000],
        [0x3f80_1001, 0x3f80_2000],
        [0xbf80_1000, 0xbf80_0000],
        [0x7f80_0000, 0x7f80_0000],
        [0x7f7f_f000, 0x7f80_0000],
        [0xffc1_2345, 0x7fff_e000],
        [0x7f80_0fff, 0x7fff_e000],
        [0x0000_0001, 0x0000_0000],
        [0x8000_3000, 0x8000_4000],
        [0x0040_0000, 0x0040_0000],
        [0x007f_f000, 0x0080_0000],
    ];
    let bytes = |side: usize| -> Vec<u8> { pairs.iter().flat_map(|pair| pair[side].to_le_bytes()).collect() };
    for element in [11, 12] {
        let tensor = map(element, &[12], &[12]);
        let text = kernel(&[0], OF_PARAM, &load(&[0], 48));
        let [_, tile] = launch(&tensor, &text, &bytes(0), Checks::ALL).unwrap_or_else(|stop| panic!("{stop}"));
        assert_eq!(tile[..48], bytes(1));
    }
}

#[test]
fn steps_leave_elements_out() {
    for steps in [[1, 2, 1], [1, 1, 3], [4, 5, 8]] {
        agrees(&TensorMap { steps: steps.to_vec(), ..map(F32, &[12, 11, 10], &[8, 6, 4]) }, &[2, 3, 5]);
    }
}

#[test]
fn a_swizzle_moves_units_of_16_bytes() {
    for swizzle in [32, 64, 128] {
        for at in [[0, 0], [5, 20], [-3, -1]] {
            let halves = map(F16, &[70, 40], &[swizzle / 2, 16]);
            agrees(&TensorMap { swizzle, ..halves }, &at);
        }
    }
    agrees(&TensorMap { swizzle: 128, ..map(F32, &[70, 40], &[16, 16]) }, &[1, 2]);
}

#[test]
fn a_map_lies_in_parameters_or_global_memory() {
    let tensor = map(F32, &[64, 4], &[32, 2]);
    let bytes = random(span(&tensor) + 192);
    let memory = Memory::new(1 << 20);
    let (from, to) = (memory.upload(&bytes).unwrap(), memory.alloc(TILE as u64).unwrap());
    let known = TensorMap { address: from, ..tensor.clone() };
    let place = memory.upload(&known.encode()[..]).unwrap();
    let text = kernel(&[8, 1], "ld.param.u64 %map, [m];", &load(&[8, 1], 256));
    let mut params: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
    params.resize(64, 0);
    params.extend(place.to_le_bytes());
    params.resize(192, 0);
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    run(module.kernel("k").unwrap(), &shape(1, 32), &params, &memory, &Config::default())
        .unwrap_or_else(|stop| panic!("{stop}"));
    let tile: Vec<u8> = memory.download(to, 256).unwrap();
    let row = |row: usize| &bytes[256 * (row + 1) + 32..][..128];
    assert_eq!(tile, [row(0), row(1)].concat());
}

#[test]
fn a_box_that_is_not_possible_stops_the_launch() {
    let good = map(F32, &[64, 4], &[32, 2]);
    let bytes = random(span(&good));
    let at = [0, 0];
    let body = load(&at, 256);
    let shown =
        |map: &TensorMap, text: &str| launch(map, text, &bytes, Checks::NONE).expect_err("it stops").to_string();
    for (map, text, words) in [
        (good.clone(), kernel(&at, "mov.u64 %map, 0;", &body), "no tensor map"),
        (good.clone(), kernel(&at, &format!("{OF_PARAM} add.u64 %map, %map, 8;"), &body), "its tensor map at"),
        (good.clone(), kernel(&at, OF_PARAM, &load(&[0], 256)), "has 2 dimensions, and it names 1"),
        (good.clone(), kernel(&at, OF_PARAM, &body.replace("[tile]", "[tile+64]")), "multiple of 128"),
        (good.clone(), kernel(&[-3, 0], OF_PARAM, &load(&[-3, 0], 256)), "first coordinate that is 12 bytes from 0"),
        (TensorMap { boxes: vec![256, 256], ..good.clone() }, kernel(&at, OF_PARAM, &body), "stores 262144 bytes"),
        (
            TensorMap { extents: vec![64, 400], ..good.clone() },
            kernel(&[0, 100], OF_PARAM, &load(&at, 256)),
            "out of bounds",
        ),
    ] {
        let stop = shown(&map, &text);
        assert!(stop.contains(words), "{words}: {stop}");
    }
}

#[test]
fn what_the_software_gpu_lacks_is_refused_by_name() {
    for (opcode, words) in [
        (
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], [%map, {%c0, %c0, %c0, %c0}], [bar], {%h1, %h1};",
            "im2col",
        ),
        ("cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%map, {%c0, %c0, %c0, %c0}], {%h1, %h1};", "im2col"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%c0}], [tile];", "number of operands"),
    ] {
        let text = kernel(&[0], &format!(".reg .b16 %h<2>; {OF_PARAM}"), opcode);
        let why = super::refusal(&text).to_string();
        assert!(why.contains(words), "{why}");
    }
    let text = kernel(&[0, 0], OF_PARAM, "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%map, {%c0, %c1}];");
    assert!(Module::parse(&text).unwrap().kernel("k").unwrap().supported().is_ok());
}

#[test]
fn a_box_may_reach_all_blocks_of_a_cluster() {
    let tensor = map(F32, &[64, 4], &[32, 2]);
    let bytes = random(span(&tensor));
    let memory = Memory::new(1 << 20);
    let (from, to) = (memory.upload(&bytes).unwrap(), memory.alloc(2 * TILE as u64).unwrap());
    let load = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; mov.b16 %h1, 3;
        barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r4, %cluster_ctarank; setp.eq.and.u32 %p1, %r4, 1, %p1;
        @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
            [tile], [%map, {%c0, %c1}], [bar], %h1;
        wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra wait; mad.wide.u32 %to, %r4, 4096, %to;
        barrier.cluster.arrive; barrier.cluster.wait;";
    let text = kernel(&[8, 1], &format!(".reg .b16 %h<2>; {OF_PARAM}"), load);
    let text = text.replace("m[128])", "m[128]) .reqnctapercluster 2, 1, 1");
    let mut params: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
    params.resize(64, 0);
    params.extend(TensorMap { address: from, ..tensor }.encode());
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let config = Config { checks: Checks::ALL, ..Config::default() };
    let report = run(module.kernel("k").unwrap(), &shape(2, 32), &params, &memory, &config);
    assert_eq!(report.unwrap_or_else(|stop| panic!("{stop}")).findings, []);
    let expected = [&bytes[256 + 32..][..128], &bytes[512 + 32..][..128]].concat();
    for block in 0..2 {
        assert_eq!(memory.download::<u8>(to + block * TILE as u64, 256).unwrap(), expected, "block {block}");
    }
}

#[test]
fn maps_of_any_bytes_copy_or_are_refused() {
    let mut random = crate::programs::random::Random::new(1);
    let good = map(F16, &[40, 30], &[16, 8]);
    let memory = Memory::new(1 << 20);
    let (from, to) = (memory.alloc(4096).unwrap(), memory.alloc(TILE as u64).unwrap());
    let good = TensorMap { address: from, ..good }.encode();
    let text = kernel(&[-3, 5], OF_PARAM, &format!("{} {}", load(&[-3, 5], 256), store(&[-3, 5])));
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let config = Config { work_limit: 1 << 20, ..Config::default() };
    for _ in 0..500 {
        let mut bytes = good;
        // The mark and the rank stay, so that most maps get past them.
        for _ in 0..=random.below(4) {
            bytes[8 + random.below(64)] = random.bits() as u8;
        }
        let mut params: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
        params.resize(64, 0);
        params.extend(bytes);
        if let Err(stop) = run(module.kernel("k").unwrap(), &shape(1, 32), &params, &memory, &config) {
            assert!(!stop.to_string().is_empty());
        }
    }
}
