//! `mma` gives the bits of an H200.
//!
//! `products-h200.bin` has, for each line of [`PRODUCTS`] and three warps each, the registers of
//! the first matrix, the second, the addend and the sum: 32 lanes of a register side by side. An
//! NVIDIA H200 (driver 580.159) computed the sums on 2026-11-28, from numbers of like exponents, of
//! exponents far apart, and of any bits, with infinities and NaN.

use warpstride_interp::{Config, Memory};

use super::{PRELUDE, launch_with, shape};

const RECORD: &[u8] = include_bytes!("../data/products-h200.bin");
const WARPS: usize = 3;

/// The shape and types of a product, and the registers of each matrix.
const PRODUCTS: [(&str, [usize; 4]); 36] = [
    ("m16n8k8.row.col.f32.f16.f16.f32", [2, 1, 4, 4]),
    ("m16n8k8.row.col.f16.f16.f16.f16", [2, 1, 2, 2]),
    ("m16n8k8.row.col.f32.bf16.bf16.f32", [2, 1, 4, 4]),
    ("m16n8k16.row.col.f32.f16.f16.f32", [4, 2, 4, 4]),
    ("m16n8k16.row.col.f16.f16.f16.f16", [4, 2, 2, 2]),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", [4, 2, 4, 4]),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", [2, 1, 4, 4]),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", [4, 2, 4, 4]),
    ("m16n8k32.row.col.f32.e4m3.e4m3.f32", [4, 2, 4, 4]),
    ("m16n8k32.row.col.f32.e5m2.e5m2.f32", [4, 2, 4, 4]),
    ("m16n8k32.row.col.f32.e4m3.e5m2.f32", [4, 2, 4, 4]),
    ("m8n8k16.row.col.s32.s8.s8.s32", [1, 1, 2, 2]),
    ("m8n8k16.row.col.s32.u8.s8.s32", [1, 1, 2, 2]),
    ("m8n8k16.row.col.s32.u8.u8.s32", [1, 1, 2, 2]),
    ("m8n8k16.row.col.satfinite.s32.s8.s8.s32", [1, 1, 2, 2]),
    ("m16n8k16.row.col.s32.s8.s8.s32", [2, 1, 4, 4]),
    ("m16n8k16.row.col.s32.u8.s8.s32", [2, 1, 4, 4]),
    ("m16n8k16.row.col.s32.u8.u8.s32", [2, 1, 4, 4]),
    ("m16n8k16.row.col.satfinite.s32.s8.s8.s32", [2, 1, 4, 4]),
    ("m16n8k32.row.col.s32.s8.s8.s32", [4, 2, 4, 4]),
    ("m16n8k32.row.col.s32.u8.s8.s32", [4, 2, 4, 4]),
    ("m16n8k32.row.col.s32.u8.u8.s32", [4, 2, 4, 4]),
    ("m16n8k32.row.col.satfinite.s32.s8.s8.s32", [4, 2, 4, 4]),
    ("m8n8k32.row.col.s32.s4.u4.s32", [1, 1, 2, 2]),
    ("m16n8k32.row.col.s32.s4.u4.s32", [2, 1, 4, 4]),
    ("m16n8k64.row.col.s32.s4.u4.s32", [4, 2, 4, 4]),
    ("m8n8k128.row.col.s32.b1.b1.s32.xor.popc", [1, 1, 2, 2]),
    ("m8n8k128.row.col.s32.b1.b1.s32.and.popc", [1, 1, 2, 2]),
    ("m16n8k128.row.col.s32.b1.b1.s32.xor.popc", [2, 1, 4, 4]),
    ("m16n8k128.row.col.s32.b1.b1.s32.and.popc", [2, 1, 4, 4]),
    ("m16n8k256.row.col.s32.b1.b1.s32.xor.popc", [4, 2, 4, 4]),
    ("m16n8k256.row.col.s32.b1.b1.s32.and.popc", [4, 2, 4, 4]),
    ("m8n8k4.row.col.f64.f64.f64.f64", [1, 1, 2, 2]),
    ("m16n8k4.row.col.f64.f64.f64.f64", [2, 1, 4, 4]),
    ("m16n8k8.row.col.f64.f64.f64.f64", [4, 2, 4, 4]),
    ("m16n8k16.row.col.f64.f64.f64.f64", [8, 4, 4, 4]),
];

/// Returns the registers of the sum, for the registers of both matrices and of the addend.
fn product(opcode: &str, registers: [usize; 4], operands: &[u8]) -> Vec<u8> {
    let (kind, width) = if opcode.contains("f64") { ("f64", 8) } else { ("b32", 4) };
    let [first, second, addend, sum] = registers;
    let list = |name: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("%{name}{number}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let mut body = String::new();
    let mut place = 0;
    for (name, count) in [("a", first), ("b", second), ("c", addend)] {
        for number in 0..count {
            body += &format!("ld.global.{kind} %{name}{number}, [%in + {}];\n", 32 * width * place);
            place += 1;
        }
    }
    let [a, b, c, d] = [("a", first), ("b", second), ("c", addend), ("d", sum)].map(|(name, count)| list(name, count));
    body += &format!("mma.sync.aligned.{opcode} {d}, {a}, {b}, {c};\n");
    for number in 0..sum {
        body += &format!("st.global.{kind} [%out + {}], %d{number};\n", 32 * width * number);
    }
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p, .param .u64 q) {{
            .reg .{kind} %a<8>, %b<4>, %c<4>, %d<4>; .reg .b32 %lane; .reg .b64 %in, %out;
            mov.u32 %lane, %tid.x; ld.param.u64 %in, [p]; ld.param.u64 %out, [q];
            mad.wide.u32 %in, %lane, {width}, %in; mad.wide.u32 %out, %lane, {width}, %out;
            {body} ret;
        }}"
    );
    let memory = Memory::new(1 << 20);
    let from = memory.upload(operands).unwrap();
    let to = memory.alloc((32 * width * sum) as u64).unwrap();
    let params: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
    launch_with(&Config::default(), &text, shape(1, 32), &params, &memory).unwrap_or_else(|stop| panic!("{stop}"));
    memory.download(to, 32 * width * sum).unwrap()
}

#[test]
fn products_of_matrices_are_an_h200s_bit_by_bit() {
    let mut rest = RECORD;
    for (opcode, registers) in PRODUCTS {
        let row = if opcode.contains("f64") { 256 } else { 128 };
        let [first, second, addend, sum] = registers.map(|count| count * row);
        for warp in 0..WARPS {
            let (operands, behind) = rest.split_at(first + second + addend);
            let (expected, behind) = behind.split_at(sum);
            rest = behind;
            assert!(product(opcode, registers, operands) == expected, "{opcode}, warp {warp}");
        }
    }
    assert!(rest.is_empty());
}

#[test]
fn a_list_of_another_length_is_refused() {
    let text = format!(
        "{PRELUDE}.visible .entry k() {{
            .reg .b32 %a<4>;
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
                {{%a0, %a1, %a2, %a3}}, {{%a0, %a1}}, {{%a0, %a1}}, {{%a0, %a1, %a2, %a3}};
            ret;
        }}"
    );
    let stop = launch_with(&Config::default(), &text, shape(1, 32), &[], &Memory::new(1)).unwrap_err();
    assert!(stop.to_string().contains("operands"), "{stop}");
}

#[test]
fn a_product_is_no_access_to_memory() {
    let text = |store: &str| {
        format!(
            "{PRELUDE}.visible .entry k(.param .u64 a) {{
                .reg .b32 %a<4>; .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [a];
                mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
                    {{%a0, %a1, %a2, %a3}}, {{%a0, %a1, %a2, %a3}}, {{%a0, %a1}}, {{%a0, %a1, %a2, %a3}};
                {store}
                ret;
            }}"
        )
    };
    let memory = Memory::new(4);
    let params = memory.alloc(4).unwrap().to_le_bytes();
    let run = |store| launch_with(&Config::default(), &text(store), shape(1, 32), &params, &memory).unwrap();
    assert!(run("").instructions.is_empty());
    let report = run("st.global.u32 [%rd1], %a0;");
    assert_eq!(report.instructions.iter().map(|row| row.executions).collect::<Vec<_>>(), [1]);
}
