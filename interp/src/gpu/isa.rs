//! The instruction table: one line for each form. Decoding, dispatch and the list of supported
//! instructions are made from it.
//!
//! A line reads `Name "spelling" (sources) -> result = function;`. The spelling may hold
//! alternatives in braces (`{u32,s32}`), some of which have names (`{type}`, see [`SETS`]). Sources
//! and result are the Rust types of the function's arguments and result. A `{pred}` in place of the
//! parentheses means whole predicates as masks, with a bit for each lane. Forms that are more than
//! a function of plain values name their [`Shape`] in brackets, and a handler that takes the warp.
//!
//! If only the low bits of a result are kept, two's complement serves both signs, so many lines
//! cover `u` and `s`. A new form is a new line; a doc comment begins a section. The idea of
//! declaring the instruction set once comes from wasmi.

use super::modifiers::Modifiers;
use super::vocabulary::{Kind, OperandType};

/// Alternatives that many spellings share.
pub(crate) const SETS: &[(&str, &[&str])] = &[
    ("type", &["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]),
    ("vector", &["", ".v2", ".v4"]),
    ("read", &["", ".weak", ".volatile", ".relaxed.cta", ".relaxed.cluster", ".relaxed.gpu", ".relaxed.sys"]),
    ("acquire", &[".acquire.cta", ".acquire.cluster", ".acquire.gpu", ".acquire.sys"]),
    ("write", &["", ".weak", ".volatile", ".relaxed.cta", ".relaxed.cluster", ".relaxed.gpu", ".relaxed.sys"]),
    ("release", &[".release.cta", ".release.cluster", ".release.gpu", ".release.sys"]),
    ("order", &["", ".relaxed", ".acquire", ".release", ".acq_rel"]),
    ("scope", &["", ".cta", ".cluster", ".gpu", ".sys"]),
    ("where", &["", ".global", ".shared", ".shared::cta"]),
    (
        "cache",
        &[
            "",
            ".ca",
            ".cg",
            ".cs",
            ".lu",
            ".cv",
            ".wb",
            ".wt",
            ".L1::no_allocate",
            ".L1::evict_first",
            ".L1::evict_last",
        ],
    ),
    ("evict", &["", ".L1::no_allocate", ".L1::evict_first", ".L1::evict_last"]),
    ("ahead", &[".L2::64B", ".L2::128B", ".L2::256B"]),
    ("cta", &["", "::cta"]),
    ("param", &["", "::entry", "::func"]),
    ("round", &["", ".rn", ".rz", ".rm", ".rp"]),
    ("rounds", &[".rn", ".rz", ".rm", ".rp"]),
    ("directed", &[".rz", ".rm", ".rp"]),
    ("integral", &[".rni", ".rzi", ".rmi", ".rpi"]),
    ("ftz", &["", ".ftz"]),
    ("sat", &["", ".sat"]),
    ("relu", &["", ".relu"]),
    ("NaN", &["", ".NaN"]),
    ("xorsign", &["", ".xorsign.abs"]),
    ("compare", &["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]),
    ("narrow", &["u8", "s8", "u16", "s16", "u32", "s32"]),
    ("long", &["u64", "s64"]),
    ("half", &["f16", "bf16"]),
    ("halves", &["f16x2", "bf16x2"]),
    ("sync", &["", ".sync"]),
    ("block", &["", ".shared", ".shared::cta"]),
    ("publish", &["", ".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster"]),
    ("receive", &["", ".acquire.cta", ".acquire.cluster", ".relaxed.cta", ".relaxed.cluster"]),
    ("satfinite", &["", ".satfinite"]),
];

/// Passes the table to the macro `$with`, after `$first`.
macro_rules! instruction_table { ($with:ident $first:tt) => { $with! { $first

    /// Integer arithmetic
    AddB16      "add.{u16,s16}"             (u16, u16) -> u16           = u16::wrapping_add;
    AddB32      "add.{u32,s32}"             (u32, u32) -> u32           = u32::wrapping_add;
    AddB64      "add.{u64,s64}"             (u64, u64) -> u64           = u64::wrapping_add;
    SubB16      "sub.{u16,s16}"             (u16, u16) -> u16           = u16::wrapping_sub;
    SubB32      "sub.{u32,s32}"             (u32, u32) -> u32           = u32::wrapping_sub;
    SubB64      "sub.{u64,s64}"             (u64, u64) -> u64           = u64::wrapping_sub;
    MulB16      "mul.lo.{u16,s16}"          (u16, u16) -> u16           = u16::wrapping_mul;
    MulB32      "mul.lo.{u32,s32}"          (u32, u32) -> u32           = u32::wrapping_mul;
    MulB64      "mul.lo.{u64,s64}"          (u64, u64) -> u64           = u64::wrapping_mul;
    MulHiU32    "mul.hi.u32"                (u32, u32) -> u32           = integer::mul_hi_u32;
    MulHiS32    "mul.hi.s32"                (i32, i32) -> i32           = integer::mul_hi_s32;
    MulHiU64    "mul.hi.u64"                (u64, u64) -> u64           = integer::mul_hi_u64;
    MulHiS64    "mul.hi.s64"                (i64, i64) -> i64           = integer::mul_hi_s64;
    MulWideU16  "mul.wide.u16"              (u16, u16) -> u32           = |a, b| u32::from(a) * u32::from(b);
    MulWideS16  "mul.wide.s16"              (i16, i16) -> i32           = |a, b| i32::from(a) * i32::from(b);
    MulWideU32  "mul.wide.u32"              (u32, u32) -> u64           = |a, b| u64::from(a) * u64::from(b);
    MulWideS32  "mul.wide.s32"              (i32, i32) -> i64           = |a, b| i64::from(a) * i64::from(b);
    MadB16      "mad.lo.{u16,s16}"          (u16, u16, u16) -> u16      = |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    MadB32      "mad.lo.{u32,s32}"          (u32, u32, u32) -> u32      = |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    MadB64      "mad.lo.{u64,s64}"          (u64, u64, u64) -> u64      = |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    MadHiU32    "mad.hi.u32"                (u32, u32, u32) -> u32      = |a, b, c| integer::mul_hi_u32(a, b).wrapping_add(c);
    MadHiS32    "mad.hi.s32"                (i32, i32, i32) -> i32      = |a, b, c| integer::mul_hi_s32(a, b).wrapping_add(c);
    MadWideU16  "mad.wide.u16"              (u16, u16, u32) -> u32      = |a, b, c| (u32::from(a) * u32::from(b)).wrapping_add(c);
    MadWideS16  "mad.wide.s16"              (i16, i16, i32) -> i32      = |a, b, c| (i32::from(a) * i32::from(b)).wrapping_add(c);
    MadWideU32  "mad.wide.u32"              (u32, u32, u64) -> u64      = |a, b, c| (u64::from(a) * u64::from(b)).wrapping_add(c);
    MadWideS32  "mad.wide.s32"              (i32, i32, i64) -> i64      = |a, b, c| (i64::from(a) * i64::from(b)).wrapping_add(c);
    DivU16      "div.u16"                   (u16, u16) -> u16           = integer::div_u16;
    DivS16      "div.s16"                   (i16, i16) -> i16           = integer::div_s16;
    DivU32      "div.u32"                   (u32, u32) -> u32           = integer::div_u32;
    DivS32      "div.s32"                   (i32, i32) -> i32           = integer::div_s32;
    DivU64      "div.u64"                   (u64, u64) -> u64           = integer::div_u64;
    DivS64      "div.s64"                   (i64, i64) -> i64           = integer::div_s64;
    RemU16      "rem.u16"                   (u16, u16) -> u16           = integer::rem_u16;
    RemS16      "rem.s16"                   (i16, i16) -> i16           = integer::rem_s16;
    RemU32      "rem.u32"                   (u32, u32) -> u32           = integer::rem_u32;
    RemS32      "rem.s32"                   (i32, i32) -> i32           = integer::rem_s32;
    RemU64      "rem.u64"                   (u64, u64) -> u64           = integer::rem_u64;
    RemS64      "rem.s64"                   (i64, i64) -> i64           = integer::rem_s64;
    MinU16      "min.u16"                   (u16, u16) -> u16           = u16::min;
    MinS16      "min.s16"                   (i16, i16) -> i16           = i16::min;
    MinU32      "min.u32"                   (u32, u32) -> u32           = u32::min;
    MinS32      "min.s32"                   (i32, i32) -> i32           = i32::min;
    MinU64      "min.u64"                   (u64, u64) -> u64           = u64::min;
    MinS64      "min.s64"                   (i64, i64) -> i64           = i64::min;
    MaxU16      "max.u16"                   (u16, u16) -> u16           = u16::max;
    MaxS16      "max.s16"                   (i16, i16) -> i16           = i16::max;
    MaxU32      "max.u32"                   (u32, u32) -> u32           = u32::max;
    MaxS32      "max.s32"                   (i32, i32) -> i32           = i32::max;
    MaxU64      "max.u64"                   (u64, u64) -> u64           = u64::max;
    MaxS64      "max.s64"                   (i64, i64) -> i64           = i64::max;
    AbsS16      "abs.s16"                   (i16) -> i16                = i16::wrapping_abs;
    AbsS32      "abs.s32"                   (i32) -> i32                = i32::wrapping_abs;
    AbsS64      "abs.s64"                   (i64) -> i64                = i64::wrapping_abs;
    NegS16      "neg.s16"                   (i16) -> i16                = i16::wrapping_neg;
    NegS32      "neg.s32"                   (i32) -> i32                = i32::wrapping_neg;
    NegS64      "neg.s64"                   (i64) -> i64                = i64::wrapping_neg;
    AddSatS32   "add.sat.s32"               (i32, i32) -> i32           = i32::saturating_add;
    SubSatS32   "sub.sat.s32"               (i32, i32) -> i32           = i32::saturating_sub;
    MulHiU16    "mul.hi.u16"                (u16, u16) -> u16           = |a, b| (u32::from(a) * u32::from(b) >> 16) as u16;
    MulHiS16    "mul.hi.s16"                (i16, i16) -> i16           = |a, b| (i32::from(a) * i32::from(b) >> 16) as i16;
    MadHiU16    "mad.hi.u16"                (u16, u16, u16) -> u16      = |a, b, c| ((u32::from(a) * u32::from(b) >> 16) as u16).wrapping_add(c);
    MadHiS16    "mad.hi.s16"                (i16, i16, i16) -> i16      = |a, b, c| ((i32::from(a) * i32::from(b) >> 16) as i16).wrapping_add(c);
    MadHiU64    "mad.hi.u64"                (u64, u64, u64) -> u64      = |a, b, c| integer::mul_hi_u64(a, b).wrapping_add(c);
    MadHiS64    "mad.hi.s64"                (i64, i64, i64) -> i64      = |a, b, c| integer::mul_hi_s64(a, b).wrapping_add(c);
    MadHiSat    "mad.hi.sat.s32"            (i32, i32, i32) -> i32      = |a, b, c| integer::mul_hi_s32(a, b).saturating_add(c);
    Mul24LoU    "mul24.lo.u32"              (u32, u32) -> u32           = |a, b| integer::mul24_u(a, b) as u32;
    Mul24LoS    "mul24.lo.s32"              (i32, i32) -> i32           = |a, b| integer::mul24_s(a, b) as i32;
    Mul24HiU    "mul24.hi.u32"              (u32, u32) -> u32           = |a, b| (integer::mul24_u(a, b) >> 16) as u32;
    Mul24HiS    "mul24.hi.s32"              (i32, i32) -> i32           = |a, b| (integer::mul24_s(a, b) >> 16) as i32;
    Mad24LoU    "mad24.lo.u32"              (u32, u32, u32) -> u32      = |a, b, c| (integer::mul24_u(a, b) as u32).wrapping_add(c);
    Mad24LoS    "mad24.lo.s32"              (i32, i32, i32) -> i32      = |a, b, c| (integer::mul24_s(a, b) as i32).wrapping_add(c);
    Mad24HiU    "mad24.hi.u32"              (u32, u32, u32) -> u32      = |a, b, c| ((integer::mul24_u(a, b) >> 16) as u32).wrapping_add(c);
    Mad24HiS    "mad24.hi.s32"              (i32, i32, i32) -> i32      = |a, b, c| ((integer::mul24_s(a, b) >> 16) as i32).wrapping_add(c);
    Mad24HiSat  "mad24.hi.sat.s32"          (i32, i32, i32) -> i32      = |a, b, c| ((integer::mul24_s(a, b) >> 16) as i32).saturating_add(c);
    SadU16      "sad.u16"                   (u16, u16, u16) -> u16      = |a, b, c| c.wrapping_add(a.abs_diff(b));
    SadS16      "sad.s16"                   (i16, i16, i16) -> i16      = |a: i16, b, c: i16| c.wrapping_add_unsigned(a.abs_diff(b));
    SadU32      "sad.u32"                   (u32, u32, u32) -> u32      = |a, b, c| c.wrapping_add(a.abs_diff(b));
    SadS32      "sad.s32"                   (i32, i32, i32) -> i32      = |a: i32, b, c: i32| c.wrapping_add_unsigned(a.abs_diff(b));
    SadU64      "sad.u64"                   (u64, u64, u64) -> u64      = |a, b, c| c.wrapping_add(a.abs_diff(b));
    SadS64      "sad.s64"                   (i64, i64, i64) -> i64      = |a: i64, b, c: i64| c.wrapping_add_unsigned(a.abs_diff(b));
    MinReluS32  "min.s32.relu"              (i32, i32) -> i32           = |a: i32, b| a.min(b).max(0);
    MaxReluS32  "max.s32.relu"              (i32, i32) -> i32           = |a: i32, b| a.max(b).max(0);
    Add16x2     "add.{u16x2,s16x2}"         (u32, u32) -> u32           = |a, b| packed::both([a, b], |[a, b]| a.wrapping_add(b));
    Min16x2     "min.{u16x2,s16x2,s16x2.relu}" (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |halves| packed::choice(m, halves, u16::min, i16::min));
    Max16x2     "max.{u16x2,s16x2,s16x2.relu}" (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |halves| packed::choice(m, halves, u16::max, i16::max));
    Dp4a        "dp4a.{u32,s32}.{u32,s32}"  (Modifiers, u32, u32, u32) -> u32 = packed::dp4a;
    Dp2aLo      "dp2a.lo.{u32,s32}.{u32,s32}" (Modifiers, u32, u32, u32) -> u32 = |m, a, b, c| packed::dp2a(m, a, b, c, 0);
    Dp2aHi      "dp2a.hi.{u32,s32}.{u32,s32}" (Modifiers, u32, u32, u32) -> u32 = |m, a, b, c| packed::dp2a(m, a, b, c, 2);
    VAbsDiff4   "vabsdiff4.u32.u32.u32"     (u32, u32, u32) -> u32      = |a, b, _| packed::distances(a, b);
    VAbsDiff4Add "vabsdiff4.u32.u32.u32.add" (u32, u32, u32) -> u32     = packed::sum_of_distances;

    /// Integers with a carry: each result and each carry is a form, and instructions are made of both
    AddC32      "sum of addc.{u32,s32}"                   (u32, u32, bool) -> u32     = |a, b, c| integer::add_carry32(a, b, c).0;
    AddC64      "sum of addc.{u64,s64}"                   (u64, u64, bool) -> u64     = |a, b, c| integer::add_carry64(a, b, c).0;
    SubC32      "difference of subc.{u32,s32}"                   (u32, u32, bool) -> u32     = |a, b: u32, c| integer::add_carry32(a, !b, c).0;
    SubC64      "difference of subc.{u64,s64}"                   (u64, u64, bool) -> u64     = |a, b: u64, c| integer::add_carry64(a, !b, c).0;
    AddCarry32  "carry of addc.{u32,s32}"          (u32, u32, bool) -> bool    = |a, b, c| integer::add_carry32(a, b, c).1;
    AddCarry64  "carry of addc.{u64,s64}"          (u64, u64, bool) -> bool    = |a, b, c| integer::add_carry64(a, b, c).1;
    SubCarry32  "carry of subc.{u32,s32}"          (u32, u32, bool) -> bool    = |a, b: u32, c| integer::add_carry32(a, !b, c).1;
    SubCarry64  "carry of subc.{u64,s64}"          (u64, u64, bool) -> bool    = |a, b: u64, c| integer::add_carry64(a, !b, c).1;

    /// Bits
    AndB16      "and.b16"                   (u16, u16) -> u16           = |a, b| a & b;
    AndB32      "and.b32"                   (u32, u32) -> u32           = |a, b| a & b;
    AndB64      "and.b64"                   (u64, u64) -> u64           = |a, b| a & b;
    OrB16       "or.b16"                    (u16, u16) -> u16           = |a, b| a | b;
    OrB32       "or.b32"                    (u32, u32) -> u32           = |a, b| a | b;
    OrB64       "or.b64"                    (u64, u64) -> u64           = |a, b| a | b;
    XorB16      "xor.b16"                   (u16, u16) -> u16           = |a, b| a ^ b;
    XorB32      "xor.b32"                   (u32, u32) -> u32           = |a, b| a ^ b;
    XorB64      "xor.b64"                   (u64, u64) -> u64           = |a, b| a ^ b;
    NotB16      "not.b16"                   (u16) -> u16                = |a: u16| !a;
    NotB32      "not.b32"                   (u32) -> u32                = |a: u32| !a;
    NotB64      "not.b64"                   (u64) -> u64                = |a: u64| !a;
    AndPred     "and.pred"                  {pred, pred}                = |[a, b]| a & b;
    OrPred      "or.pred"                   {pred, pred}                = |[a, b]| a | b;
    XorPred     "xor.pred"                  {pred, pred}                = |[a, b]| a ^ b;
    NotPred     "not.pred"                  {pred}                      = |[a]| !a;
    MovPred     "mov.pred"                  {pred}                      = |[a]| a;
    ShlB16      "shl.b16"                   (u16, u32) -> u16           = integer::shl16;
    ShlB32      "shl.b32"                   (u32, u32) -> u32           = integer::shl32;
    ShlB64      "shl.b64"                   (u64, u32) -> u64           = integer::shl64;
    ShrU16      "shr.{u16,b16}"             (u16, u32) -> u16           = integer::shr_u16;
    ShrU32      "shr.{u32,b32}"             (u32, u32) -> u32           = integer::shr_u32;
    ShrU64      "shr.{u64,b64}"             (u64, u32) -> u64           = integer::shr_u64;
    ShrS16      "shr.s16"                   (i16, u32) -> i16           = integer::shr_s16;
    ShrS32      "shr.s32"                   (i32, u32) -> i32           = integer::shr_s32;
    ShrS64      "shr.s64"                   (i64, u32) -> i64           = integer::shr_s64;
    ShfLWrap    "shf.l.wrap.b32"            (u32, u32, u32) -> u32      = |a, b, n| integer::funnel_left(a, b, n & 31);
    ShfLClamp   "shf.l.clamp.b32"           (u32, u32, u32) -> u32      = |a, b, n: u32| integer::funnel_left(a, b, n.min(32));
    ShfRWrap    "shf.r.wrap.b32"            (u32, u32, u32) -> u32      = |a, b, n| integer::funnel_right(a, b, n & 31);
    ShfRClamp   "shf.r.clamp.b32"           (u32, u32, u32) -> u32      = |a, b, n: u32| integer::funnel_right(a, b, n.min(32));
    BfeU32      "bfe.u32"                   (u32, u32, u32) -> u32      = integer::bfe_u32;
    BfeS32      "bfe.s32"                   (i32, u32, u32) -> i32      = integer::bfe_s32;
    BfeU64      "bfe.u64"                   (u64, u32, u32) -> u64      = integer::bfe_u64;
    BfeS64      "bfe.s64"                   (i64, u32, u32) -> i64      = integer::bfe_s64;
    BfiB32      "bfi.b32"                   (u32, u32, u32, u32) -> u32 = integer::bfi32;
    BfiB64      "bfi.b64"                   (u64, u64, u32, u32) -> u64 = integer::bfi64;
    PrmtB32     "prmt.b32"                  (u32, u32, u32) -> u32      = integer::prmt;
    ClzB32      "clz.b32"                   (u32) -> u32                = u32::leading_zeros;
    ClzB64      "clz.b64"                   (u64) -> u32                = u64::leading_zeros;
    PopcB32     "popc.b32"                  (u32) -> u32                = u32::count_ones;
    PopcB64     "popc.b64"                  (u64) -> u32                = u64::count_ones;
    BrevB32     "brev.b32"                  (u32) -> u32                = u32::reverse_bits;
    BrevB64     "brev.b64"                  (u64) -> u64                = u64::reverse_bits;
    PrmtF4e     "prmt.b32.f4e"              (u32, u32, u32) -> u32      = |a, b, c| integer::prmt_mode(a, b, c, integer::FORWARD);
    PrmtB4e     "prmt.b32.b4e"              (u32, u32, u32) -> u32      = |a, b, c| integer::prmt_mode(a, b, c, integer::BACKWARD);
    PrmtRc8     "prmt.b32.rc8"              (u32, u32, u32) -> u32      = |a, b, c| integer::prmt_mode(a, b, c, integer::REPLICATE_BYTE);
    PrmtEcl     "prmt.b32.ecl"              (u32, u32, u32) -> u32      = |a, b, c| integer::prmt_mode(a, b, c, integer::CLAMP_LEFT);
    PrmtEcr     "prmt.b32.ecr"              (u32, u32, u32) -> u32      = |a, b, c| integer::prmt_mode(a, b, c, integer::CLAMP_RIGHT);
    PrmtRc16    "prmt.b32.rc16"             (u32, u32, u32) -> u32      = |a, b, c| integer::prmt_mode(a, b, c, integer::REPLICATE_HALF);
    Lop3        "lop3.b32"                  (u32, u32, u32, u32) -> u32 = integer::lop3;
    CnotB16     "cnot.b16"                  (u16) -> u16                = |a| u16::from(a == 0);
    CnotB32     "cnot.b32"                  (u32) -> u32                = |a| u32::from(a == 0);
    CnotB64     "cnot.b64"                  (u64) -> u64                = |a| u64::from(a == 0);
    BfindU32    "bfind.u32"                 (u32) -> u32                = integer::bfind_u32;
    BfindS32    "bfind.s32"                 (i32) -> u32                = |a| integer::bfind_u32(integer::unsigned_bits32(a));
    BfindU64    "bfind.u64"                 (u64) -> u32                = integer::bfind_u64;
    BfindS64    "bfind.s64"                 (i64) -> u32                = |a| integer::bfind_u64(integer::unsigned_bits64(a));
    ShiftU32    "bfind.shiftamt.u32"        (u32) -> u32                = |a| integer::shift_amount(integer::bfind_u32(a), 31);
    ShiftS32    "bfind.shiftamt.s32"        (i32) -> u32                = |a| integer::shift_amount(integer::bfind_u32(integer::unsigned_bits32(a)), 31);
    ShiftU64    "bfind.shiftamt.u64"        (u64) -> u32                = |a| integer::shift_amount(integer::bfind_u64(a), 63);
    ShiftS64    "bfind.shiftamt.s64"        (i64) -> u32                = |a| integer::shift_amount(integer::bfind_u64(integer::unsigned_bits64(a)), 63);
    Fns         "fns.b32"                   (u32, u32, i32) -> u32      = integer::nth_set;
    SzextWrapU  "szext.wrap.u32"            (u32, u32) -> u32           = |a, n| integer::bfe_u32(a, 0, n & 31);
    SzextWrapS  "szext.wrap.s32"            (i32, u32) -> i32           = |a, n| integer::bfe_s32(a, 0, n & 31);
    SzextClampU "szext.clamp.u32"           (u32, u32) -> u32           = |a, n: u32| integer::bfe_u32(a, 0, n.min(32));
    SzextClampS "szext.clamp.s32"           (i32, u32) -> i32           = |a, n: u32| integer::bfe_s32(a, 0, n.min(32));
    BmskWrap    "bmsk.wrap.b32"             (u32, u32) -> u32           = |start, width| integer::mask32(start & 31, width & 31);
    BmskClamp   "bmsk.clamp.b32"            (u32, u32) -> u32           = |start: u32, width: u32| integer::mask32(start.min(32), width.min(32));

    /// Moves
    // Moves between vectors and wider registers, and between the halves of wider registers, are
    // distinguished by their operands.
    MovB16      "mov.{b16,u16,s16}"         (u16) -> u16                = |a| a;
    MovB32      "mov.{b32,u32,s32,f32}"     (u32) -> u32                = |a| a;
    MovB64      "mov.{b64,u64,s64,f64}"     (u64) -> u64                = |a| a;
    PackB32     "mov.b32"                   (u16, u16) -> u32           = |a, b| u32::from(a) | u32::from(b) << 16;
    PackB64     "mov.b64"                   (u32, u32) -> u64           = |a, b| u64::from(a) | u64::from(b) << 32;
    PackQuarters "mov.b64"                  (u16, u16, u16, u16) -> u64 = |a, b, c, d| packed::quarters([a, b, c, d]);
    LowB32      "low half of mov.b32"       (u32) -> u16                = |a| a as u16;
    HighB32     "high half of mov.b32"      (u32) -> u16                = |a| (a >> 16) as u16;
    LowB64      "low half of mov.b64"       (u64) -> u32                = |a| a as u32;
    HighB64     "high half of mov.b64"      (u64) -> u32                = |a| (a >> 32) as u32;
    Quarter     "quarter of mov.b64"        (u64, u32) -> u16           = |a, from| (a >> from) as u16;
    SelpB16     "selp.{b16,u16,s16}"        (u16, u16, bool) -> u16     = |a, b, p| if p { a } else { b };
    SelpB32     "selp.{b32,u32,s32,f32}"    (u32, u32, bool) -> u32     = |a, b, p| if p { a } else { b };
    SelpB64     "selp.{b64,u64,s64,f64}"    (u64, u64, bool) -> u64     = |a, b, p| if p { a } else { b };
    SlctB16     "slct{ftz}.{b16,u16,s16}.{s32,f32}" (Modifiers, u16, u16, u32) -> u16 = |m, a, b, c| if compare::not_below_zero(m, c) { a } else { b };
    SlctB32     "slct{ftz}.{b32,u32,s32,f32}.{s32,f32}" (Modifiers, u32, u32, u32) -> u32 = |m, a, b, c| if compare::not_below_zero(m, c) { a } else { b };
    SlctB64     "slct{ftz}.{b64,u64,s64,f64}.{s32,f32}" (Modifiers, u64, u64, u32) -> u64 = |m, a, b, c| if compare::not_below_zero(m, c) { a } else { b };

    /// Comparisons
    EqB16       "setp.eq.{b16,u16,s16}"     (u16, u16) -> bool          = |a, b| a == b;
    EqB32       "setp.eq.{b32,u32,s32}"     (u32, u32) -> bool          = |a, b| a == b;
    EqB64       "setp.eq.{b64,u64,s64}"     (u64, u64) -> bool          = |a, b| a == b;
    NeB16       "setp.ne.{b16,u16,s16}"     (u16, u16) -> bool          = |a, b| a != b;
    NeB32       "setp.ne.{b32,u32,s32}"     (u32, u32) -> bool          = |a, b| a != b;
    NeB64       "setp.ne.{b64,u64,s64}"     (u64, u64) -> bool          = |a, b| a != b;
    LtU16       "setp.{lt,lo}.u16"          (u16, u16) -> bool          = |a, b| a < b;
    LtS16       "setp.lt.s16"               (i16, i16) -> bool          = |a, b| a < b;
    LtU32       "setp.{lt,lo}.u32"          (u32, u32) -> bool          = |a, b| a < b;
    LtS32       "setp.lt.s32"               (i32, i32) -> bool          = |a, b| a < b;
    LtU64       "setp.{lt,lo}.u64"          (u64, u64) -> bool          = |a, b| a < b;
    LtS64       "setp.lt.s64"               (i64, i64) -> bool          = |a, b| a < b;
    LeU16       "setp.{le,ls}.u16"          (u16, u16) -> bool          = |a, b| a <= b;
    LeS16       "setp.le.s16"               (i16, i16) -> bool          = |a, b| a <= b;
    LeU32       "setp.{le,ls}.u32"          (u32, u32) -> bool          = |a, b| a <= b;
    LeS32       "setp.le.s32"               (i32, i32) -> bool          = |a, b| a <= b;
    LeU64       "setp.{le,ls}.u64"          (u64, u64) -> bool          = |a, b| a <= b;
    LeS64       "setp.le.s64"               (i64, i64) -> bool          = |a, b| a <= b;
    GtU16       "setp.{gt,hi}.u16"          (u16, u16) -> bool          = |a, b| a > b;
    GtS16       "setp.gt.s16"               (i16, i16) -> bool          = |a, b| a > b;
    GtU32       "setp.{gt,hi}.u32"          (u32, u32) -> bool          = |a, b| a > b;
    GtS32       "setp.gt.s32"               (i32, i32) -> bool          = |a, b| a > b;
    GtU64       "setp.{gt,hi}.u64"          (u64, u64) -> bool          = |a, b| a > b;
    GtS64       "setp.gt.s64"               (i64, i64) -> bool          = |a, b| a > b;
    GeU16       "setp.{ge,hs}.u16"          (u16, u16) -> bool          = |a, b| a >= b;
    GeS16       "setp.ge.s16"               (i16, i16) -> bool          = |a, b| a >= b;
    GeU32       "setp.{ge,hs}.u32"          (u32, u32) -> bool          = |a, b| a >= b;
    GeS32       "setp.ge.s32"               (i32, i32) -> bool          = |a, b| a >= b;
    GeU64       "setp.{ge,hs}.u64"          (u64, u64) -> bool          = |a, b| a >= b;
    GeS64       "setp.ge.s64"               (i64, i64) -> bool          = |a, b| a >= b;
    EqF32       "setp.eq.f32"               (f32, f32) -> bool          = |a, b| a == b;
    NeF32       "setp.ne.f32"               (f32, f32) -> bool          = |a, b| a != b && !native::unordered32(a, b);
    LtF32       "setp.lt.f32"               (f32, f32) -> bool          = |a, b| a < b;
    LeF32       "setp.le.f32"               (f32, f32) -> bool          = |a, b| a <= b;
    GtF32       "setp.gt.f32"               (f32, f32) -> bool          = |a, b| a > b;
    GeF32       "setp.ge.f32"               (f32, f32) -> bool          = |a, b| a >= b;
    EquF32      "setp.equ.f32"              (f32, f32) -> bool          = |a, b| a == b || native::unordered32(a, b);
    NeuF32      "setp.neu.f32"              (f32, f32) -> bool          = |a, b| a != b;
    LtuF32      "setp.ltu.f32"              (f32, f32) -> bool          = |a, b| a < b || native::unordered32(a, b);
    LeuF32      "setp.leu.f32"              (f32, f32) -> bool          = |a, b| a <= b || native::unordered32(a, b);
    GtuF32      "setp.gtu.f32"              (f32, f32) -> bool          = |a, b| a > b || native::unordered32(a, b);
    GeuF32      "setp.geu.f32"              (f32, f32) -> bool          = |a, b| a >= b || native::unordered32(a, b);
    NumF32      "setp.num.f32"              (f32, f32) -> bool          = |a, b| !native::unordered32(a, b);
    NanF32      "setp.nan.f32"              (f32, f32) -> bool          = native::unordered32;
    EqF64       "setp.eq.f64"               (f64, f64) -> bool          = |a, b| a == b;
    NeF64       "setp.ne.f64"               (f64, f64) -> bool          = |a, b| a != b && !native::unordered64(a, b);
    LtF64       "setp.lt.f64"               (f64, f64) -> bool          = |a, b| a < b;
    LeF64       "setp.le.f64"               (f64, f64) -> bool          = |a, b| a <= b;
    GtF64       "setp.gt.f64"               (f64, f64) -> bool          = |a, b| a > b;
    GeF64       "setp.ge.f64"               (f64, f64) -> bool          = |a, b| a >= b;
    EquF64      "setp.equ.f64"              (f64, f64) -> bool          = |a, b| a == b || native::unordered64(a, b);
    NeuF64      "setp.neu.f64"              (f64, f64) -> bool          = |a, b| a != b;
    LtuF64      "setp.ltu.f64"              (f64, f64) -> bool          = |a, b| a < b || native::unordered64(a, b);
    LeuF64      "setp.leu.f64"              (f64, f64) -> bool          = |a, b| a <= b || native::unordered64(a, b);
    GtuF64      "setp.gtu.f64"              (f64, f64) -> bool          = |a, b| a > b || native::unordered64(a, b);
    GeuF64      "setp.geu.f64"              (f64, f64) -> bool          = |a, b| a >= b || native::unordered64(a, b);
    NumF64      "setp.num.f64"              (f64, f64) -> bool          = |a, b| !native::unordered64(a, b);
    NanF64      "setp.nan.f64"              (f64, f64) -> bool          = native::unordered64;
    CompareFtz  "setp.{compare}.ftz.f32"    (Modifiers, f32, f32) -> bool = compare::flushed;
    CompareHalf "setp.{compare}{ftz}.f16"   (Modifiers, u16, u16) -> bool = compare::halves;
    CompareBf   "setp.{compare}.bf16"       (Modifiers, u16, u16) -> bool = compare::halves;
    SetHalves   "set.{compare}{ftz}.{f16x2,u32,s32}.f16x2" (Modifiers, u32, u32) -> u32 = compare::set_halves;
    SetBfHalves "set.{compare}.{bf16x2,u32,s32}.bf16x2" (Modifiers, u32, u32) -> u32 = compare::set_halves;
    Finite32    "testp.finite.f32"          (f32) -> bool               = f32::is_finite;
    Finite64    "testp.finite.f64"          (f64) -> bool               = f64::is_finite;
    Infinite32  "testp.infinite.f32"        (f32) -> bool               = f32::is_infinite;
    Infinite64  "testp.infinite.f64"        (f64) -> bool               = f64::is_infinite;
    Number32    "testp.number.f32"          (f32) -> bool               = |a: f32| !a.is_nan();
    Number64    "testp.number.f64"          (f64) -> bool               = |a: f64| !a.is_nan();
    NotANumber32 "testp.notanumber.f32"     (f32) -> bool               = f32::is_nan;
    NotANumber64 "testp.notanumber.f64"     (f64) -> bool               = f64::is_nan;
    Normal32    "testp.normal.f32"          (f32) -> bool               = |a: f32| a.is_normal() || a == 0.0;
    Normal64    "testp.normal.f64"          (f64) -> bool               = |a: f64| a.is_normal() || a == 0.0;
    Subnormal32 "testp.subnormal.f32"       (f32) -> bool               = f32::is_subnormal;
    Subnormal64 "testp.subnormal.f64"       (f64) -> bool               = f64::is_subnormal;

    /// Floating point
    // Floating point to nearest in single and double precision. If the result is a number, the
    // host's arithmetic equals the device's, bit for bit. A NaN of single precision is the one that
    // an H100 makes. A NaN of double precision comes from an operand; `first_nan` lists the
    // operands in the H100's order.
    AddF32      "add{,.rn}.f32"             (f32, f32) -> f32           = |a, b| native::canonical32(a + b);
    AddF64      "add{,.rn}.f64"             (f64, f64) -> f64           = |a, b| native::first_nan(a + b, [b, a]);
    SubF32      "sub{,.rn}.f32"             (f32, f32) -> f32           = |a, b| native::canonical32(a - b);
    SubF64      "sub{,.rn}.f64"             (f64, f64) -> f64           = |a, b| native::first_nan(a - b, [b, a]);
    MulF32      "mul{,.rn}.f32"             (f32, f32) -> f32           = |a, b| native::canonical32(a * b);
    MulF64      "mul{,.rn}.f64"             (f64, f64) -> f64           = |a, b| native::first_nan(a * b, [b, a]);
    FmaF32      "{fma,mad}.rn.f32"          (f32, f32, f32) -> f32      = |a, b, c| native::canonical32(f32::mul_add(a, b, c));
    FmaF64      "{fma,mad}.rn.f64"          (f64, f64, f64) -> f64      = |a, b, c| native::first_nan(f64::mul_add(a, b, c), [b, c, a]);
    DivF32      "div.rn.f32"                (f32, f32) -> f32           = |a, b| native::canonical32(a / b);
    DivF64      "div.rn.f64"                (f64, f64) -> f64           = |a, b| native::first_nan(a / b, [a, b]);
    SqrtF32     "sqrt.rn.f32"               (f32) -> f32                = |a| native::canonical32(f32::sqrt(a));
    SqrtF64     "sqrt.rn.f64"               (f64) -> f64                = |a| native::first_nan(f64::sqrt(a), [a]);
    MinF32      "min.f32"                   (f32, f32) -> f32           = native::min_f32;
    MinF64      "min.f64"                   (f64, f64) -> f64           = native::min_f64;
    MaxF32      "max.f32"                   (f32, f32) -> f32           = native::max_f32;
    MaxF64      "max.f64"                   (f64, f64) -> f64           = native::max_f64;
    NegF32      "neg.f32"                   (f32) -> f32                = |a: f32| native::canonical32(-a);
    NegF64      "neg.f64"                   (f64) -> f64                = native::neg_f64;
    AbsF32      "abs.f32"                   (f32) -> f32                = |a: f32| native::canonical32(a.abs());
    AbsF64      "abs.f64"                   (f64) -> f64                = native::abs_f64;
    CopysignF32 "copysign.f32"              (f32, f32) -> f32           = |sign, value| f32::copysign(value, sign);
    CopysignF64 "copysign.f64"              (f64, f64) -> f64           = |sign, value| f64::copysign(value, sign);
    AddFtz      "add{,.rn}.ftz.f32"         (f32, f32) -> f32           = |a, b| native::ftz(native::flush(a) + native::flush(b));
    SubFtz      "sub{,.rn}.ftz.f32"         (f32, f32) -> f32           = |a, b| native::ftz(native::flush(a) - native::flush(b));
    MulFtz      "mul{,.rn}.ftz.f32"         (Modifiers, f32, f32) -> f32 = |m, a, b| native::ftz_product(native::flush(a) * native::flush(b), || float::mul(m, a, b));
    FmaFtz      "{fma,mad}.rn.ftz.f32"      (Modifiers, f32, f32, f32) -> f32 = |m, a, b, c| native::ftz_product(f32::mul_add(native::flush(a), native::flush(b), native::flush(c)), || float::fma(m, a, b, c));
    MinFtz      "min.ftz.f32"               (f32, f32) -> f32           = |a, b| native::min_f32(native::flush(a), native::flush(b));
    MaxFtz      "max.ftz.f32"               (f32, f32) -> f32           = |a, b| native::max_f32(native::flush(a), native::flush(b));
    NegFtz      "neg.ftz.f32"               (f32) -> f32                = |a| native::ftz(-a);
    AbsFtz      "abs.ftz.f32"               (f32) -> f32                = |a: f32| native::ftz(a.abs());

    // The first line with a matching spelling is taken, so these lines do not slow down those
    // above.
    /// Floating point in any rounding and format, through integers
    AddAnyF32   "add{round}{ftz}{sat}.f32"  (Modifiers, f32, f32) -> f32 = float::add;
    AddAnyF64   "add{directed}.f64"         (Modifiers, f64, f64) -> f64 = float::add;
    AddHalf     "add{,.rn}{ftz}{sat}.f16"   (Modifiers, u16, u16) -> u16 = float::add;
    AddBf       "add{,.rn}.bf16"            (Modifiers, u16, u16) -> u16 = float::add;
    AddHalves   "add{,.rn}{ftz}{sat}.f16x2" (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::add(m, a, b));
    AddBfHalves "add{,.rn}.bf16x2"          (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::add(m, a, b));
    SubAnyF32   "sub{round}{ftz}{sat}.f32"  (Modifiers, f32, f32) -> f32 = float::sub;
    SubAnyF64   "sub{directed}.f64"         (Modifiers, f64, f64) -> f64 = float::sub;
    SubHalf     "sub{,.rn}{ftz}{sat}.f16"   (Modifiers, u16, u16) -> u16 = float::sub;
    SubBf       "sub{,.rn}.bf16"            (Modifiers, u16, u16) -> u16 = float::sub;
    SubHalves   "sub{,.rn}{ftz}{sat}.f16x2" (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::sub(m, a, b));
    SubBfHalves "sub{,.rn}.bf16x2"          (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::sub(m, a, b));
    MulAnyF32   "mul{round}{ftz}{sat}.f32"  (Modifiers, f32, f32) -> f32 = float::mul;
    MulAnyF64   "mul{directed}.f64"         (Modifiers, f64, f64) -> f64 = float::mul;
    MulHalf     "mul{,.rn}{ftz}{sat}.f16"   (Modifiers, u16, u16) -> u16 = float::mul;
    MulBf       "mul{,.rn}.bf16"            (Modifiers, u16, u16) -> u16 = float::mul;
    MulHalves   "mul{,.rn}{ftz}{sat}.f16x2" (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::mul(m, a, b));
    MulBfHalves "mul{,.rn}.bf16x2"          (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::mul(m, a, b));
    FmaAnyF32   "{fma,mad}{rounds}{ftz}{sat}.f32" (Modifiers, f32, f32, f32) -> f32 = float::fma;
    FmaAnyF64   "{fma,mad}{directed}.f64"   (Modifiers, f64, f64, f64) -> f64 = float::fma;
    FmaHalf     "fma.rn{ftz}{,.sat,.relu}.f16" (Modifiers, u16, u16, u16) -> u16 = float::fma;
    FmaBf       "fma.rn{relu}.bf16"         (Modifiers, u16, u16, u16) -> u16 = float::fma;
    FmaHalves   "fma.rn{ftz}{,.sat,.relu}.f16x2" (Modifiers, u32, u32, u32) -> u32 = |m, a, b, c| packed::both([a, b, c], |[a, b, c]| float::fma(m, a, b, c));
    FmaBfHalves "fma.rn{relu}.bf16x2"       (Modifiers, u32, u32, u32) -> u32 = |m, a, b, c| packed::both([a, b, c], |[a, b, c]| float::fma(m, a, b, c));
    DivAnyF32   "div{rounds}{ftz}.f32"      (Modifiers, f32, f32) -> f32 = float::div;
    DivAnyF64   "div{directed}.f64"         (Modifiers, f64, f64) -> f64 = float::div;
    RcpAnyF32   "rcp{rounds}{ftz}.f32"      (Modifiers, f32) -> f32     = float::rcp;
    RcpAnyF64   "rcp{rounds}.f64"           (Modifiers, f64) -> f64     = float::rcp;
    SqrtAnyF32  "sqrt{rounds}{ftz}.f32"     (Modifiers, f32) -> f32     = float::sqrt;
    SqrtAnyF64  "sqrt{directed}.f64"        (Modifiers, f64) -> f64     = float::sqrt;
    MinAnyF32   "min{ftz}{NaN}{xorsign}.f32" (Modifiers, f32, f32) -> f32 = float::min;
    MinHalf     "min{ftz}{NaN}{xorsign}.f16" (Modifiers, u16, u16) -> u16 = float::min;
    MinBf       "min{NaN}{xorsign}.bf16"    (Modifiers, u16, u16) -> u16 = float::min;
    MinHalves   "min{ftz}{NaN}{xorsign}.f16x2" (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::min(m, a, b));
    MinBfHalves "min{NaN}{xorsign}.bf16x2"  (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::min(m, a, b));
    MaxAnyF32   "max{ftz}{NaN}{xorsign}.f32" (Modifiers, f32, f32) -> f32 = float::max;
    MaxHalf     "max{ftz}{NaN}{xorsign}.f16" (Modifiers, u16, u16) -> u16 = float::max;
    MaxBf       "max{NaN}{xorsign}.bf16"    (Modifiers, u16, u16) -> u16 = float::max;
    MaxHalves   "max{ftz}{NaN}{xorsign}.f16x2" (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::max(m, a, b));
    MaxBfHalves "max{NaN}{xorsign}.bf16x2"  (Modifiers, u32, u32) -> u32 = |m, a, b| packed::both([a, b], |[a, b]| float::max(m, a, b));
    NegHalf     "neg{ftz}.f16"              (Modifiers, u16) -> u16     = float::neg;
    NegBf       "neg.bf16"                  (Modifiers, u16) -> u16     = float::neg;
    NegHalves   "neg{ftz}.f16x2"            (Modifiers, u32) -> u32     = |m, a| packed::both([a], |[a]| float::neg(m, a));
    NegBfHalves "neg.bf16x2"                (Modifiers, u32) -> u32     = |m, a| packed::both([a], |[a]| float::neg(m, a));
    AbsHalf     "abs{ftz}.f16"              (Modifiers, u16) -> u16     = float::abs;
    AbsBf       "abs.bf16"                  (Modifiers, u16) -> u16     = float::abs;
    AbsHalves   "abs{ftz}.f16x2"            (Modifiers, u32) -> u32     = |m, a| packed::both([a], |[a]| float::abs(m, a));
    AbsBfHalves "abs.bf16x2"                (Modifiers, u32) -> u32     = |m, a| packed::both([a], |[a]| float::abs(m, a));

    /// Approximations: the ISA bounds their error and leaves the bits open
    DivApprox   "div.approx{ftz}.f32"       (Modifiers, f32, f32) -> f32 = approx::fast_div;
    DivFull     "div.full{ftz}.f32"         (Modifiers, f32, f32) -> f32 = approx::div;
    RcpApprox   "rcp.approx{ftz}.f32"       (Modifiers, f32) -> f32     = |m, a| approx::unary(m, a, f64::recip);
    RcpUpper    "rcp.approx.ftz.f64"        (Modifiers, f64) -> f64     = |m, a| approx::upper_half(m, a, f64::recip);
    SqrtApprox  "sqrt.approx{ftz}.f32"      (Modifiers, f32) -> f32     = |m, a| approx::unary(m, a, f64::sqrt);
    RsqrtApprox "rsqrt.approx{ftz}.f32"     (Modifiers, f32) -> f32     = |m, a| approx::unary(m, a, approx::rsqrt);
    RsqrtUpper  "rsqrt.approx.ftz.f64"      (Modifiers, f64) -> f64     = |m, a| approx::upper_half(m, a, approx::rsqrt);
    RsqrtDouble "rsqrt.approx.f64"          (Modifiers, f64) -> f64     = |m, a| native::first_nan(approx::unary(m, a, approx::rsqrt), [a]);
    Ex2Approx   "ex2.approx{ftz}.f32"       (Modifiers, f32) -> f32     = |m, a| approx::unary(m, a, f64::exp2);
    Lg2Approx   "lg2.approx{ftz}.f32"       (Modifiers, f32) -> f32     = |m, a| approx::unary(m, a, f64::log2);
    SinApprox   "sin.approx{ftz}.f32"       (Modifiers, f32) -> f32     = |m, a| approx::of_turns(m, a, approx::sin);
    CosApprox   "cos.approx{ftz}.f32"       (Modifiers, f32) -> f32     = |m, a| approx::of_turns(m, a, approx::cos);
    TanhApprox  "tanh.approx.f32"           (Modifiers, f32) -> f32     = |m, a| approx::unary(m, a, f64::tanh);
    Ex2Half     "ex2.approx.{f16,ftz.bf16}" (Modifiers, u16) -> u16     = |m, a| approx::unary(m, a, f64::exp2);
    Ex2Halves   "ex2.approx.{f16x2,ftz.bf16x2}" (Modifiers, u32) -> u32 = |m, a| packed::both([a], |[a]| approx::unary(m, a, f64::exp2));
    TanhHalf    "tanh.approx.{half}"        (Modifiers, u16) -> u16     = |m, a| approx::unary(m, a, f64::tanh);
    TanhHalves  "tanh.approx.{halves}"      (Modifiers, u32) -> u32     = |m, a| packed::both([a], |[a]| approx::unary(m, a, f64::tanh));

    /// Conversions
    // A conversion to fewer bits keeps the low bits; one to more bits extends by the source's sign.
    CvtU8From32   "cvt.u8.{u16,s16,u32,s32}"    (u32) -> u8     = |a| a as u8;
    CvtS8From32   "cvt.s8.{u16,s16,u32,s32}"    (u32) -> i8     = |a| a as i8;
    CvtU8From64   "cvt.u8.{u64,s64}"            (u64) -> u8     = |a| a as u8;
    CvtS8From64   "cvt.s8.{u64,s64}"            (u64) -> i8     = |a| a as i8;
    Cvt16FromU8   "cvt.{u16,s16}.u8"            (u8) -> u16     = u16::from;
    CvtU16FromS8  "cvt.u16.s8"                  (i8) -> u16     = |a| a as u16;
    CvtS16FromS8  "cvt.s16.s8"                  (i8) -> i16     = i16::from;
    CvtU16From32  "cvt.u16.{u16,s16,u32,s32}"   (u32) -> u16    = |a| a as u16;
    CvtS16From32  "cvt.s16.{u16,s16,u32,s32}"   (u32) -> i16    = |a| a as i16;
    CvtU16From64  "cvt.u16.{u64,s64}"           (u64) -> u16    = |a| a as u16;
    CvtS16From64  "cvt.s16.{u64,s64}"           (u64) -> i16    = |a| a as i16;
    Cvt32FromU8   "cvt.{u32,s32}.u8"            (u8) -> u32     = u32::from;
    Cvt32FromS8   "cvt.{u32,s32}.s8"            (i8) -> i32     = i32::from;
    Cvt32FromU16  "cvt.{u32,s32}.u16"           (u16) -> u32    = u32::from;
    Cvt32FromS16  "cvt.{u32,s32}.s16"           (i16) -> i32    = i32::from;
    Cvt32From32   "cvt.{u32,s32}.{u32,s32}"     (u32) -> u32    = |a| a;
    Cvt32From64   "cvt.{u32,s32}.{u64,s64}"     (u64) -> u32    = |a| a as u32;
    Cvt64FromU8   "cvt.{u64,s64}.u8"            (u8) -> u64     = u64::from;
    Cvt64FromS8   "cvt.{u64,s64}.s8"            (i8) -> i64     = i64::from;
    Cvt64FromU16  "cvt.{u64,s64}.u16"           (u16) -> u64    = u64::from;
    Cvt64FromS16  "cvt.{u64,s64}.s16"           (i16) -> i64    = i64::from;
    Cvt64FromU32  "cvt.{u64,s64}.u32"           (u32) -> u64    = u64::from;
    Cvt64FromS32  "cvt.{u64,s64}.s32"           (i32) -> i64    = i64::from;
    Cvt64From64   "cvt.{u64,s64}.{u64,s64}"     (u64) -> u64    = |a| a;
    CvtF32FromU16 "cvt.rn.f32.u16"              (u16) -> f32    = f32::from;
    CvtF32FromS16 "cvt.rn.f32.s16"              (i16) -> f32    = f32::from;
    CvtF32FromU32 "cvt.rn.f32.u32"              (u32) -> f32    = |a| a as f32;
    CvtF32FromS32 "cvt.rn.f32.s32"              (i32) -> f32    = |a| a as f32;
    CvtF32FromU64 "cvt.rn.f32.u64"              (u64) -> f32    = |a| a as f32;
    CvtF32FromS64 "cvt.rn.f32.s64"              (i64) -> f32    = |a| a as f32;
    CvtF32FromF64 "cvt.rn.f32.f64"              (f64) -> f32    = convert::f64_as_f32;
    CvtF64FromU16 "cvt.rn.f64.u16"              (u16) -> f64    = f64::from;
    CvtF64FromS16 "cvt.rn.f64.s16"              (i16) -> f64    = f64::from;
    CvtF64FromU32 "cvt.rn.f64.u32"              (u32) -> f64    = f64::from;
    CvtF64FromS32 "cvt.rn.f64.s32"              (i32) -> f64    = f64::from;
    CvtF64FromU64 "cvt.rn.f64.u64"              (u64) -> f64    = |a| a as f64;
    CvtF64FromS64 "cvt.rn.f64.s64"              (i64) -> f64    = |a| a as f64;
    CvtF64FromF32 "cvt.f64.f32"                 (f32) -> f64    = convert::f32_as_f64;
    // A conversion to an integer saturates, as `as` does. A NaN gives 0, or from double precision 1
    // << 31, as on an H100.
    CvtU32FromF32 "cvt.rzi.u32.f32"             (f32) -> u32    = |a| a as u32;
    CvtS32FromF32 "cvt.rzi.s32.f32"             (f32) -> i32    = |a| a as i32;
    CvtU32FromF64 "cvt.rzi.u32.f64"             (f64) -> u32    = native::integer_u32;
    CvtS32FromF64 "cvt.rzi.s32.f64"             (f64) -> i32    = native::integer_s32;
    CvtF32FromF32 "cvt.f32.f32"                 (u32) -> u32    = |a| a;
    CvtF64FromF64 "cvt.f64.f64"                 (u64) -> u64    = |a| a;
    CvtF32FromF16 "cvt.f32.f16"                 (u16) -> f32    = convert::f16_as_f32;
    CvtF32FromBf  "cvt.f32.bf16"                (u16) -> f32    = convert::bf16_as_f32;

    /// Any other conversions, through integers
    CvtSat32From32 "cvt.sat.{narrow}.{narrow}"  (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtSat32From64 "cvt.sat.{narrow}.{long}"    (Modifiers, u64) -> u32 = |m, a| convert::convert(m, a) as u32;
    CvtSat64From32 "cvt.sat.{long}.{narrow}"    (Modifiers, u32) -> u64 = |m, a| convert::convert(m, u64::from(a));
    CvtSat64From64 "cvt.sat.{long}.{long}"      (Modifiers, u64) -> u64 = convert::convert;
    CvtFloatFrom32 "cvt{rounds}{sat}.{f16,f32}.{narrow}" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtFloatFrom64 "cvt{rounds}{sat}.{f16,f32}.{long}" (Modifiers, u64) -> u32 = |m, a| convert::convert(m, a) as u32;
    CvtBfFrom32 "cvt{rounds}.bf16.{u16,s16,u32,s32}" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtBfFrom64 "cvt{rounds}.bf16.{long}" (Modifiers, u64) -> u32 = |m, a| convert::convert(m, a) as u32;
    CvtDoubleFrom32 "cvt{rounds}{sat}.f64.{narrow}" (Modifiers, u32) -> u64 = |m, a| convert::convert(m, u64::from(a));
    CvtDoubleFrom64 "cvt{rounds}{sat}.f64.{long}" (Modifiers, u64) -> u64 = convert::convert;
    CvtIntFromHalf "cvt{integral}{sat}.{narrow}.f16" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtIntFromBf "cvt{integral}.{u16,s16,u32,s32}.bf16" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtIntFromFloat "cvt{integral}{ftz}{sat}.{narrow}.f32" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtIntFromDouble "cvt{integral}{sat}.{narrow}.f64" (Modifiers, u64) -> u32 = |m, a| convert::convert(m, a) as u32;
    CvtLongFromHalf "cvt{integral}{sat}.{long}.f16" (Modifiers, u32) -> u64 = |m, a| convert::convert(m, u64::from(a));
    CvtLongFromBf "cvt{integral}.{long}.bf16" (Modifiers, u32) -> u64 = |m, a| convert::convert(m, u64::from(a));
    CvtLongFromFloat "cvt{integral}{ftz}{sat}.{long}.f32" (Modifiers, u32) -> u64 = |m, a| convert::convert(m, u64::from(a));
    CvtLongFromDouble "cvt{integral}{sat}.{long}.f64" (Modifiers, u64) -> u64 = convert::convert;
    CvtIntegralHalf "cvt{integral}{sat}.f16.f16" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtIntegralBf "cvt{integral}.bf16.bf16" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtIntegralFloat "cvt{integral}{ftz}{sat}.f32.f32" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtIntegralDouble "cvt{integral}{sat}.f64.f64" (Modifiers, u64) -> u64 = convert::convert;
    CvtSameHalf "cvt{sat}.f16.f16" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtSameFloat "cvt.{sat,ftz,ftz.sat}.{f32.f32,f32.f16}" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtSameDouble "cvt.sat.f64.f64" (Modifiers, u64) -> u64 = convert::convert;
    CvtWiden "cvt.{f64.f16,f64.bf16,sat.f64.f16,sat.f64.f32,ftz.f64.f32,ftz.sat.f64.f32}" (Modifiers, u32) -> u64 = |m, a| convert::convert(m, u64::from(a));
    CvtNarrowHalf "cvt{rounds}{ftz}{sat}.f16.f32" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtNarrowBf "cvt{rounds}{ftz}.bf16.f32" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtBetweenHalves "cvt{rounds}.{bf16.f16,f16.bf16}" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtHalfFromDouble "cvt{rounds}{sat}.f16.f64" (Modifiers, u64) -> u32 = |m, a| convert::convert(m, a) as u32;
    CvtBfFromDouble "cvt{rounds}.bf16.f64" (Modifiers, u64) -> u32 = |m, a| convert::convert(m, a) as u32;
    CvtFloatFromDouble "cvt{rounds}{ftz}{sat}.f32.f64" (Modifiers, u64) -> u32 = |m, a| convert::convert(m, a) as u32;
    CvtRelu       "cvt.{rn,rz}.relu.{f16,bf16}.f32" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtTf32       "cvt.{rna,rn,rz,rn.relu,rz.relu}.tf32.f32" (Modifiers, u32) -> u32 = |m, a| convert::convert(m, u64::from(a)) as u32;
    CvtFloats     "cvt.{rn,rz}{relu}.{f16x2,bf16x2}.f32" (Modifiers, f32, f32) -> u32 = convert::pack_floats;
    CvtE4m3Floats "cvt.rn.satfinite{relu}.e4m3x2.f32" (Modifiers, u32, u32) -> u32 = |m, a, b| Byte::E4M3.of_floats(m, a, b);
    CvtE5m2Floats "cvt.rn.satfinite{relu}.e5m2x2.f32" (Modifiers, u32, u32) -> u32 = |m, a, b| Byte::E5M2.of_floats(m, a, b);
    CvtE4m3Halves "cvt.rn.satfinite{relu}.e4m3x2.f16x2" (Modifiers, u32) -> u32 = |m, a| Byte::E4M3.of_halves(m, a);
    CvtE5m2Halves "cvt.rn.satfinite{relu}.e5m2x2.f16x2" (Modifiers, u32) -> u32 = |m, a| Byte::E5M2.of_halves(m, a);
    CvtHalvesE4m3 "cvt.rn{relu}.f16x2.e4m3x2"   (Modifiers, u16) -> u32 = |m, a| Byte::E4M3.to_halves(m, a);
    CvtHalvesE5m2 "cvt.rn{relu}.f16x2.e5m2x2"   (Modifiers, u16) -> u32 = |m, a| Byte::E5M2.to_halves(m, a);
    CvtPackHalves "cvt.pack.sat.{u16,s16}.s32"  (Modifiers, i32, i32) -> u32 = convert::pack_halves;
    CvtPackBytes  "cvt.pack.sat.{u8,s8}.s32.b32" (Modifiers, i32, i32, u32) -> u32 = convert::pack_bytes;

    /// Addresses
    // Shared and local addresses are offsets until `cvta` makes them generic.
    CvtaGlobal    "cvta{,.to}.global.u64"       (u64) -> u64    = |a| a;
    CvtaShared    "cvta.shared{cta}.u64"        (u64) -> u64    = |a| space::SHARED.wrapping_add(a);
    CvtaToShared  "cvta.to.shared{cta}.u64"     (u64) -> u64    = |a: u64| a.wrapping_sub(space::SHARED);
    CvtaCluster   "cvta.shared::cluster.u64"    (u64) -> u64    = |a| space::SHARED.wrapping_add(a);
    CvtaToCluster "cvta.to.shared::cluster.u64" (u64) -> u64    = |a: u64| a.wrapping_sub(space::SHARED);
    CvtaLocal     "cvta.local.u64"              (u64) -> u64    = |a| space::LOCAL.wrapping_add(a);
    CvtaToLocal   "cvta.to.local.u64"           (u64) -> u64    = |a: u64| a.wrapping_sub(space::LOCAL);
    CvtaConst     "cvta{,.to}.const.u64"        (u64) -> u64    = |a| a;
    CvtaParam     "cvta.param.u64"              (u64) -> u64    = |a| space::PARAM.wrapping_add(a);
    CvtaToParam   "cvta.to.param.u64"           (u64) -> u64    = |a: u64| a.wrapping_sub(space::PARAM);
    IsGlobal      "isspacep.global"             (u64) -> bool   = |a| space::window(a) == 0 && !space::is_constant(a);
    IsConst       "isspacep.const"              (u64) -> bool   = space::is_constant;
    IsShared      "isspacep.shared{,::cta,::cluster}" [IsShared] = peers::is_own;
    IsWindow      "window of shared memory"     (u64) -> bool   = |a| space::window(a) == space::SHARED;
    Mapa32        "mapa.shared::cluster.u32"    (u32, u32) -> u32 = |a, rank| space::mapped(u64::from(a), rank) as u32;
    Mapa64        "mapa{,.shared::cluster}.u64" (u64, u32) -> u64 = space::mapped;
    RankOf32      "getctarank.shared::cluster.u32" [RankOf32] = peers::rank_of::<u32>;
    RankOf64      "getctarank{,.shared::cluster}.u64" [RankOf64] = peers::rank_of::<u64>;
    IsLocal       "isspacep.local"              (u64) -> bool   = |a| space::window(a) == space::LOCAL;
    IsParam       "isspacep.param{,::entry}"    (u64) -> bool   = |a| space::window(a) == space::PARAM;

    /// Memory
    LdGeneric   "ld{read}{cache}{vector}.{type}"                [Load]      = memory::load_generic;
    LdGlobal    "ld{read}.global{cache}{,.nc}{cache}{vector}.{type}" [Load] = memory::load_global;
    LdGlobalAhead "ld.global{,.nc}{evict}{ahead}{vector}.{type}" [Load]     = memory::load_global;
    LdGlobalHinted "ld.global{,.nc}{evict}.L2::cache_hint{,.L2::64B,.L2::128B,.L2::256B}{vector}.{type}" [Load] = memory::load_global;
    LdShared    "ld{read}.shared{cta}{vector}.{type}"           [Load]      = memory::load_shared;
    // An address of a cluster's shared memory becomes a generic one.
    LdCluster   "ld{read}.shared::cluster{vector}.{type}"       [Load]      = memory::load_generic;
    LdLocal     "ld{read}.local{cache}{vector}.{type}"          [Load]      = memory::load_local;
    LdGenericAcquire "ld{acquire}{vector}.{type}"               [Load]      = memory::load_generic;
    LdGlobalAcquire  "ld{acquire}.global{vector}.{type}"        [Load]      = memory::load_global;
    LdSharedAcquire  "ld{acquire}.shared{cta}{vector}.{type}"   [Load]      = memory::load_shared;
    LdClusterAcquire "ld{acquire}.shared::cluster{vector}.{type}" [Load]    = memory::load_generic;
    LdParam     "ld.param{param}{vector}.{type}"                [Load]      = memory::load_param;
    LdConst     "ld.const{vector}.{type}"                       [Load]      = memory::load_const;
    StGeneric   "st{write}{cache}{vector}.{type}"               [Store]     = memory::store_generic;
    StGlobal    "st{write}.global{cache}{vector}.{type}"        [Store]     = memory::store_global;
    StGlobalHinted "st.global{evict}.L2::cache_hint{vector}.{type}" [Store] = memory::store_global;
    StShared    "st{write}.shared{cta}{vector}.{type}"          [Store]     = memory::store_shared;
    StCluster   "st{write}.shared::cluster{vector}.{type}"      [Store]     = memory::store_generic;
    StLocal     "st{write}.local{cache}{vector}.{type}"         [Store]     = memory::store_local;
    StGenericRelease "st{release}{vector}.{type}"               [Store]     = memory::store_generic;
    StGlobalRelease  "st{release}.global{vector}.{type}"        [Store]     = memory::store_global;
    StSharedRelease  "st{release}.shared{cta}{vector}.{type}"   [Store]     = memory::store_shared;
    StClusterRelease "st{release}.shared::cluster{vector}.{type}" [Store]   = memory::store_generic;
    // The policy value is opaque. Accesses take it, but neither their values nor their counters
    // depend on it. The fraction, which PTX makes optional, is required here.
    CreatePolicy "createpolicy.fractional.L2::{evict_last,evict_normal,evict_first,evict_unchanged}{,.L2::evict_first,.L2::evict_unchanged}.b64" (f32) -> u64 = |_| 0;
    // A copy becomes a read and a write: see `exec::copies`.
    CopyRead    "read of cp.async"                              [CopyRead]  = copies::read;
    CopyWrite   "cp.async.{ca,cg}.shared{cta}.global{,.L2::cache_hint}{,.L2::64B,.L2::128B,.L2::256B}" [Copy] = copies::issue;
    CopyCommit  "cp.async.commit_group"                         [Nothing]   = copies::commit;
    CopyWait    "cp.async.wait_group"                           [CopyWait]  = copies::wait_group;
    CopyWaitAll "cp.async.wait_all"                             [Nothing]   = copies::wait_all;
    // See `exec::bulk`.
    BulkCopy    "cp.async.bulk.{shared::cluster,shared::cta}.global.mbarrier::complete_tx::bytes{,.multicast::cluster}{,.L2::cache_hint}" [Bulk] = bulk::copy;
    BulkSend    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes" [Bulk] = bulk::copy;
    BulkStore   "cp.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}" [Bulk] = bulk::copy;
    BulkAdd     "cp.reduce.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}.add.{u32,s32,u64,f32,f64,noftz.f16,noftz.bf16}" [Bulk] = bulk::copy;
    BulkMinMax  "cp.reduce.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}.{min,max}.{u32,s32,u64,s64,f16,bf16}" [Bulk] = bulk::copy;
    BulkCount   "cp.reduce.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}.{inc,dec}.u32" [Bulk] = bulk::copy;
    BulkBits    "cp.reduce.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}.{and,or,xor}.{b32,b64}" [Bulk] = bulk::copy;
    BulkAddSend "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.{u32,s32,u64}" [Bulk] = bulk::copy;
    BulkMinMaxSend "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{min,max}.{u32,s32}" [Bulk] = bulk::copy;
    BulkCountSend "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{inc,dec}.u32" [Bulk] = bulk::copy;
    BulkBitsSend "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{and,or,xor}.b32" [Bulk] = bulk::copy;
    AsyncStore  "st.async{,.weak}.shared::cluster.mbarrier::complete_tx::bytes{,.v2,.v4}.{b32,u32,s32,f32}" [Send] = bulk::send;
    AsyncWide   "st.async{,.weak}.shared::cluster.mbarrier::complete_tx::bytes{,.v2}.{b64,u64,s64,f64}" [Send] = bulk::send;
    AsyncAdd    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.{u32,s32,u64}" [Send] = bulk::send;
    AsyncMinMax "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{min,max}.{u32,s32}" [Send] = bulk::send;
    AsyncCount  "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{inc,dec}.u32" [Send] = bulk::send;
    AsyncBits   "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{and,or,xor}.b32" [Send] = bulk::send;
    TensorLoad  "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.{shared::cluster,shared::cta}.global{,.tile}.mbarrier::complete_tx::bytes{,.multicast::cluster}{,.L2::cache_hint}" [Tensor] = bulk::copy;
    TensorStore "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta{,.tile}.bulk_group{,.L2::cache_hint}" [Tensor] = bulk::copy;
    TensorReduce "cp.reduce.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta.{add,min,max,inc,dec,and,or,xor}{,.tile}.bulk_group{,.L2::cache_hint}" [Tensor] = bulk::copy;
    TensorPrefetch "cp.async.bulk.prefetch.tensor.{1d,2d,3d,4d,5d}.L2.global{,.tile}{,.L2::cache_hint}" [TensorHint] = control::nothing;
    MapPrefetch "prefetch{,.param,.const}.tensormap"            [Hint]      = control::nothing;
    BulkCommit  "cp.async.bulk.commit_group"                    [Nothing]   = bulk::commit;
    BulkWait    "cp.async.bulk.wait_group{,.read}"              [BulkWait]  = bulk::wait_group;
    BulkPrefetch "cp.async.bulk.prefetch.L2.global{,.L2::cache_hint}" [BulkHint] = control::nothing;
    LdMatrix    "ldmatrix.sync.aligned.m8n8.{x1,x2,x4}.shared{cta}.b16" [Matrix] = matrix::load;
    LdColumns   "ldmatrix.sync.aligned.m8n8.{x1,x2,x4}.trans.shared{cta}.b16" [Matrix] = matrix::load_transposed;
    StMatrix    "stmatrix.sync.aligned.m8n8.{x1,x2,x4}.shared{cta}.b16" [MatrixStore] = matrix::store;
    StColumns   "stmatrix.sync.aligned.m8n8.{x1,x2,x4}.trans.shared{cta}.b16" [MatrixStore] = matrix::store_transposed;
    MovMatrix   "movmatrix.sync.aligned.m8n8.trans.b16"         [Transpose] = matrix::transpose;
    Membar      "membar.{cta,gl,sys}"                           [Fence]     = control::fence;
    // The unit of copies sees memory in the order of the program.
    FenceProxy  "fence.proxy.async{,.global,.shared::cta,.shared::cluster}" [Nothing] = control::nothing;
    Fence       "fence{,.sc,.acq_rel}.{cta,cluster,gpu,sys}"    [Fence]     = control::fence;

    /// Atomics, which may also say `.shared::cluster` where they name no space
    // The types are those of the value in memory and of the operands, in order. libcu++ spells the
    // ordering after the operation.
    AtomAddU32  "{atom,red}{where}{order}{scope}{where}.add{order}{scope}.u32" [Atomic u32] = u32::wrapping_add;
    AtomAddS32  "{atom,red}{where}{order}{scope}{where}.add{order}{scope}.s32" [Atomic u32] = u32::wrapping_add;
    AtomAddU64  "{atom,red}{where}{order}{scope}{where}.add{order}{scope}.u64" [Atomic u64] = u64::wrapping_add;
    AtomAddF32  "{atom,red}{where}{order}{scope}{where}.add{order}{scope}{vector}.f32" [Atomic f32] = |a, b| native::canonical32(a + b);
    AtomAddF64  "{atom,red}{where}{order}{scope}{where}.add{order}{scope}.f64" [Atomic f64] = |a, b| a + b;
    AtomAddF16  "{atom,red}{where}{order}{scope}{where}.add{order}{scope}.noftz.f16" [Atomic u16] = |a, b| float::add(Modifiers::F16, a, b);
    AtomAddBf16 "{atom,red}{where}{order}{scope}{where}.add{order}{scope}.noftz.bf16" [Atomic u16] = |a, b| float::add(Modifiers::BF16, a, b);
    AtomAddF16x2 "{atom,red}{where}{order}{scope}{where}.add{order}{scope}.noftz.f16x2" [Atomic u32] = |a, b| packed::both([a, b], |[a, b]| float::add(Modifiers::F16, a, b));
    AtomAddBf16x2 "{atom,red}{where}{order}{scope}{where}.add{order}{scope}.noftz.bf16x2" [Atomic u32] = |a, b| packed::both([a, b], |[a, b]| float::add(Modifiers::BF16, a, b));
    AtomMinU32  "{atom,red}{where}{order}{scope}{where}.min{order}{scope}.u32" [Atomic u32] = u32::min;
    AtomMinS32  "{atom,red}{where}{order}{scope}{where}.min{order}{scope}.s32" [Atomic i32] = i32::min;
    AtomMinU64  "{atom,red}{where}{order}{scope}{where}.min{order}{scope}.u64" [Atomic u64] = u64::min;
    AtomMinS64  "{atom,red}{where}{order}{scope}{where}.min{order}{scope}.s64" [Atomic i64] = i64::min;
    AtomMaxU32  "{atom,red}{where}{order}{scope}{where}.max{order}{scope}.u32" [Atomic u32] = u32::max;
    AtomMaxS32  "{atom,red}{where}{order}{scope}{where}.max{order}{scope}.s32" [Atomic i32] = i32::max;
    AtomMaxU64  "{atom,red}{where}{order}{scope}{where}.max{order}{scope}.u64" [Atomic u64] = u64::max;
    AtomMaxS64  "{atom,red}{where}{order}{scope}{where}.max{order}{scope}.s64" [Atomic i64] = i64::max;
    AtomInc     "{atom,red}{where}{order}{scope}{where}.inc{order}{scope}.u32" [Atomic u32] = |a, b| if a >= b { 0 } else { a + 1 };
    AtomDec     "{atom,red}{where}{order}{scope}{where}.dec{order}{scope}.u32" [Atomic u32] = |a, b| if a == 0 || a > b { b } else { a - 1 };
    AtomAnd32   "{atom,red}{where}{order}{scope}{where}.and{order}{scope}.b32" [Atomic u32] = |a, b| a & b;
    AtomAnd64   "{atom,red}{where}{order}{scope}{where}.and{order}{scope}.b64" [Atomic u64] = |a, b| a & b;
    AtomOr32    "{atom,red}{where}{order}{scope}{where}.or{order}{scope}.b32" [Atomic u32] = |a, b| a | b;
    AtomOr64    "{atom,red}{where}{order}{scope}{where}.or{order}{scope}.b64" [Atomic u64] = |a, b| a | b;
    AtomXor32   "{atom,red}{where}{order}{scope}{where}.xor{order}{scope}.b32" [Atomic u32] = |a, b| a ^ b;
    AtomXor64   "{atom,red}{where}{order}{scope}{where}.xor{order}{scope}.b64" [Atomic u64] = |a, b| a ^ b;
    AtomExch32  "atom{where}{order}{scope}{where}.exch{order}{scope}.b32" [Atomic u32] = |_, b| b;
    AtomExch64  "atom{where}{order}{scope}{where}.exch{order}{scope}.b64" [Atomic u64] = |_, b| b;
    AtomCas16   "atom{where}{order}{scope}{where}.cas{order}{scope}.b16" [Atomic u16, u16] = |a, old, new| if a == old { new } else { a };
    AtomCas32   "atom{where}{order}{scope}{where}.cas{order}{scope}.b32" [Atomic u32, u32] = |a, old, new| if a == old { new } else { a };
    AtomCas64   "atom{where}{order}{scope}{where}.cas{order}{scope}.b64" [Atomic u64, u64] = |a, old, new| if a == old { new } else { a };

    /// Control
    Bra         "bra{,.uni}"                                    [Branch]    = control::branch;
    BrxIdx      "brx.idx{,.uni}"                                [BranchTable] = control::branch_table;
    Exit        "{ret,exit}{,.uni}"                             [Exit]      = control::exit;
    Call        "call{,.uni}"                                   [Call]      = call::call;
    Return      "end of a function"                             [Return]    = call::ret;
    LdFrame     "ld.param of a function"                        [Frame]     = call::load;
    StFrame     "st.param{param}{vector}.{type}"                [Frame]     = call::store;
    FrameB32    "address in the frame in 32 bits"               [Frame]     = call::address32;
    FrameB64    "address in the frame in 64 bits"               [Frame]     = call::address64;
    Trap        "trap"                                          [Trap]      = control::trap;
    BarAligned  "{bar,bar.cta}.sync"                            [Barrier]   = barrier::sync_aligned;
    BarSyncAligned "barrier{,.cta}.sync.aligned"                [Barrier]   = barrier::sync_aligned;
    Barrier     "barrier{,.cta}.sync"                           [Barrier]   = barrier::sync;
    Arrive      "{bar,barrier}{,.cta}.arrive{,.aligned}"        [Arrive]    = barrier::arrive;
    BarCount    "bar{,.cta}.red.popc.u32"                       [BarrierCount] = barrier::count_aligned;
    BarAll      "bar{,.cta}.red.and.pred"                       [BarrierVote] = barrier::all_aligned;
    BarAny      "bar{,.cta}.red.or.pred"                        [BarrierVote] = barrier::any_aligned;
    CountAligned "barrier{,.cta}.red.popc.aligned.u32"          [BarrierCount] = barrier::count_aligned;
    AllAligned  "barrier{,.cta}.red.and.aligned.pred"           [BarrierVote] = barrier::all_aligned;
    AnyAligned  "barrier{,.cta}.red.or.aligned.pred"            [BarrierVote] = barrier::any_aligned;
    Count       "barrier{,.cta}.red.popc.u32"                   [BarrierCount] = barrier::count;
    All         "barrier{,.cta}.red.and.pred"                   [BarrierVote] = barrier::all;
    Any         "barrier{,.cta}.red.or.pred"                    [BarrierVote] = barrier::any;
    ClusterArrive "barrier.cluster.arrive{,.release,.relaxed}{,.aligned}" [Meet] = barrier::arrive_cluster;
    ClusterWait "barrier.cluster.wait{,.acquire}{,.aligned}"    [Meet]      = barrier::wait_cluster;
    Nanosleep   "nanosleep.u32"                                 [Sleep]     = control::sleep;
    Dependents  "griddepcontrol.{launch_dependents,wait}"       [Nothing]   = control::nothing;
    Prefetch    "prefetch{,.global,.local}.{L1,L2}"             [Hint]      = control::nothing;
    PrefetchU   "prefetchu.L1"                                  [Hint]      = control::nothing;
    Discard     "discard{,.global}.L2"                          [Hint]      = control::nothing;
    Priority    "applypriority{,.global}.L2::evict_normal"      [Hint]      = control::nothing;

    /// Warp operations
    // Operations with `.sync` involve the lanes that their last operand names, wherever they are.
    // The others, from before Volta, involve the lanes that execute them.
    WarpSync    "bar.warp.sync"                                 [WarpSync]  = exchange::warp_sync;
    ActiveMask  "activemask.b32"                                [ActiveMask] = exchange::active_mask;
    ShflUp      "shfl{sync}.up.b32"                             [Shuffle u32] = exchange::shuffle_up;
    ShflDown    "shfl{sync}.down.b32"                           [Shuffle u32] = exchange::shuffle_down;
    ShflBfly    "shfl{sync}.bfly.b32"                           [Shuffle u32] = exchange::shuffle_butterfly;
    ShflIdx     "shfl{sync}.idx.b32"                            [Shuffle u32] = exchange::shuffle_index;
    VoteAll     "vote{sync}.all.pred"                           [Vote bool] = exchange::vote_all;
    VoteAny     "vote{sync}.any.pred"                           [Vote bool] = exchange::vote_any;
    VoteUni     "vote{sync}.uni.pred"                           [Vote bool] = exchange::vote_uniform;
    VoteBallot  "vote{sync}.ballot.b32"                         [Reduce bool] = exchange::vote_ballot;
    MatchAny32  "match.any.sync.b32"                            [Reduce u32] = exchange::match_any;
    MatchAny64  "match.any.sync.b64"                            [Reduce u64] = exchange::match_any;
    MatchAll32  "match.all.sync.b32"                            [Reduce u32] = exchange::match_all;
    MatchAll64  "match.all.sync.b64"                            [Reduce u64] = exchange::match_all;
    ReduxAdd    "redux.sync.add.{u32,s32}"                      [Reduce u32] = exchange::sum;
    ReduxMinU32 "redux.sync.min.u32"                            [Reduce u32] = exchange::min_u32;
    ReduxMinS32 "redux.sync.min.s32"                            [Reduce u32] = exchange::min_s32;
    ReduxMaxU32 "redux.sync.max.u32"                            [Reduce u32] = exchange::max_u32;
    ReduxMaxS32 "redux.sync.max.s32"                            [Reduce u32] = exchange::max_s32;
    ReduxAnd    "redux.sync.and.b32"                            [Reduce u32] = exchange::all_bits;
    ReduxOr     "redux.sync.or.b32"                             [Reduce u32] = exchange::any_bits;
    ReduxXor    "redux.sync.xor.b32"                            [Reduce u32] = exchange::odd_bits;
    Elect       "elect.sync"                                    [Elect u32] = exchange::elect;

    /// Barriers in shared memory
    MbarInit    "mbarrier.{init,inval}.b64"                     [Store]     = memory::store_generic;
    MbarInitShared "mbarrier.{init,inval}.shared{cta}.b64"      [Store]     = memory::store_shared;
    MbarInitial "first state of an mbarrier"                    (u64) -> u64 = initial;
    MbarArrive  "mbarrier.arrive{,.noComplete,.expect_tx}{publish}{block}.b64" [Arrival] = arrivals::arrive;
    MbarDrop    "mbarrier.arrive_drop{,.noComplete,.expect_tx}{publish}{block}.b64" [Arrival] = arrivals::drop_out;
    MbarExpect  "mbarrier.expect_tx{,.relaxed.cta,.relaxed.cluster}{block}.b64" [Arrival] = arrivals::arrive;
    MbarComplete "mbarrier.complete_tx{,.relaxed.cta,.relaxed.cluster}{block}.b64" [Arrival] = arrivals::arrive;
    MbarArriveAt "mbarrier.{arrive,arrive_drop}{,.noComplete,.expect_tx}{publish}.shared::cluster.b64" [Arrival] = arrivals::arrive;
    MbarExpectAt "mbarrier.{expect_tx,complete_tx}{,.relaxed.cta,.relaxed.cluster}.shared::cluster.b64" [Arrival] = arrivals::arrive;
    MbarLook    "mbarrier.{test_wait,try_wait}{,.parity}{receive}{block}.b64" [Arrival] = arrivals::look;
    CopyArrive  "cp.async.mbarrier.arrive{,.noinc}{block}.b64"  [Arrival]   = arrivals::arrive;
    MbarHasLeft "end of the phase of an mbarrier"               (u64, u64) -> bool = has_left;
    MbarPending "mbarrier.pending_count.b64"                    (u64) -> u32 = pending;
    FenceInit   "fence.mbarrier_init.release.cluster"           [Nothing]   = control::nothing;

    /// Products of matrices
    MmaHalf     "mma.sync.aligned.{m16n8k8,m16n8k16}.row.col.{f16.f16.f16.f16,f32.f16.f16.f32,f32.bf16.bf16.f32}" [Product] = product::multiply;
    MmaTf32     "mma.sync.aligned.{m16n8k4,m16n8k8}.row.col.f32.tf32.tf32.f32" [Product] = product::multiply;
    MmaF8       "mma.sync.aligned.m16n8k32.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32" [Product] = product::multiply;
    MmaByte     "mma.sync.aligned.{m8n8k16,m16n8k16,m16n8k32}.row.col{satfinite}.s32.{u8,s8}.{u8,s8}.s32" [Product] = product::multiply;
    MmaNibble   "mma.sync.aligned.{m8n8k32,m16n8k32,m16n8k64}.row.col{satfinite}.s32.{u4,s4}.{u4,s4}.s32" [Product] = product::multiply;
    MmaBit      "mma.sync.aligned.{m8n8k128,m16n8k128,m16n8k256}.row.col.s32.b1.b1.s32.{xor,and}.popc" [Product] = product::multiply;
    MmaF64      "mma.sync.aligned.{m8n8k4,m16n8k4,m16n8k8,m16n8k16}.row.col{,.rn}.f64.f64.f64.f64" [Product] = product::multiply;

    // Fragments have the elements of `mma`: see `lower::fragments`.
    WmmaLoad    "wmma.load.{a,b}.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{where}.{f16,bf16,u8,s8}" [Fragment] = fragment::load;
    WmmaLoadTf32 "wmma.load.{a,b}.sync.aligned.{row,col}.m16n16k8{where}.tf32" [Fragment] = fragment::load;
    WmmaLoadSum "wmma.load.c.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{where}.{f16,f32,s32}" [Fragment] = fragment::load;
    WmmaLoadSumTf32 "wmma.load.c.sync.aligned.{row,col}.m16n16k8{where}.f32" [Fragment] = fragment::load;
    WmmaLoadF64 "wmma.load.{a,b,c}.sync.aligned.{row,col}.m8n8k4{where}.f64" [Fragment] = fragment::load;
    WmmaStore   "wmma.store.d.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{where}.{f16,f32,s32}" [FragmentStore] = fragment::store;
    WmmaStoreTf32 "wmma.store.d.sync.aligned.{row,col}.m16n16k8{where}.f32" [FragmentStore] = fragment::store;
    WmmaStoreF64 "wmma.store.d.sync.aligned.{row,col}.m8n8k4{where}.f64" [FragmentStore] = fragment::store;
    WmmaHalf    "wmma.mma.sync.aligned.{row,col}.{row,col}.{m16n16k16,m32n8k16,m8n32k16}.{f16.f16,f32.f32,f32.bf16.bf16.f32}" [Product] = product::multiply;
    WmmaTf32    "wmma.mma.sync.aligned.{row,col}.{row,col}.m16n16k8.f32.tf32.tf32.f32" [Product] = product::multiply;
    WmmaByte    "wmma.mma.sync.aligned.{row,col}.{row,col}.{m16n16k16,m32n8k16,m8n32k16}.s32.{u8.u8,s8.s8}.s32{satfinite}" [Product] = product::multiply;
    WmmaF64     "wmma.mma.sync.aligned.{row,col}.{row,col}.m8n8k4{,.rn}.f64.f64.f64.f64" [Product] = product::multiply;

    /// Special registers
    // These change while a warp runs; the others are constants of the launch or block. The warp's
    // instruction count stands for cycles.
    Clock       "%clock"                                        [ReadB32]   = |warp| warp.issued as u32;
    ClockHigh   "%clock_hi"                                     [ReadB32]   = |warp| (warp.issued >> 32) as u32;
    Clock64     "%clock64"                                      [ReadB64]   = |warp| warp.issued;
    Timer       "%globaltimer"                                  [ReadB64]   = control::nanoseconds;
    TimerLow    "%globaltimer_lo"                               [ReadB32]   = |warp| control::nanoseconds(warp) as u32;
    TimerHigh   "%globaltimer_hi"                               [ReadB32]   = |warp| (control::nanoseconds(warp) >> 32) as u32;
} } }
pub(crate) use instruction_table;

/// The operands that a form takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// A result and these sources.
    Pure {
        /// The kind of the result.
        result: Kind,
        /// The kinds of the sources.
        sources: &'static [Kind],
    },
    /// Registers, an address; with a cache hint, a policy.
    Load,
    /// An address, registers; with a cache hint, a policy.
    Store,
    /// An address in shared memory, one in global memory, bytes, and perhaps the bytes to read or a
    /// predicate of the lanes that read none; with a cache hint, a policy.
    Copy,
    /// The part of a copy that reads.
    CopyRead,
    /// The number of the latest groups of copies that need not be complete.
    CopyWait,
    /// Two addresses and a number of bytes, and perhaps a barrier and the ranks of blocks; with a
    /// cache hint, a policy.
    Bulk,
    /// An address, the registers that are stored there later, and a barrier.
    Send,
    /// The number of the latest groups of copies in bulk that need not be complete.
    BulkWait,
    /// An address and a number of bytes; with a cache hint, a policy. It has no effect.
    BulkHint,
    /// An address and a box of a tensor, in the order of the copy, and perhaps a barrier and the
    /// ranks of blocks; with a cache hint, a policy.
    Tensor,
    /// A box of a tensor; with a cache hint, a policy. It has no effect.
    TensorHint,
    /// A register for each matrix, and the address of a row.
    Matrix,
    /// The address of a row, and a register for each matrix.
    MatrixStore,
    /// A register of the transposed matrix, and one of the matrix.
    Transpose,
    /// Registers of a fragment, an address, and perhaps the elements between rows or columns.
    Fragment,
    /// An address, registers of a fragment, and perhaps the elements between rows or columns.
    FragmentStore,
    /// Registers of the sum, of two matrices, and of an addend.
    Product,
    /// A predicate, and a generic address.
    IsShared,
    /// A rank, and an address of 32 bits.
    RankOf32,
    /// A rank, and an address of 64 bits.
    RankOf64,
    /// A label.
    Branch,
    /// A register and a table of labels.
    BranchTable,
    /// None. The lanes end; `ret` in a function is a branch to its end.
    Exit,
    /// The results, the function, the arguments, and perhaps a prototype or a list of functions.
    Call,
    /// None: it is emitted after each function.
    Return,
    /// An item in the frame of the function.
    Frame,
    /// None. The launch ends.
    Trap,
    /// A number of nanoseconds to wait.
    Sleep,
    /// None, and no effect on registers.
    Nothing,
    /// An address, and perhaps a number of bytes; no effect.
    Hint,
    /// A barrier's number, and perhaps the number of threads that it waits for.
    Barrier,
    /// A barrier's number, and the number of threads that it waits for.
    Arrive,
    /// None: it concerns the barrier of the cluster.
    Meet,
    /// A 32-bit result, a barrier's number, perhaps the number of threads that it waits for, and a
    /// predicate.
    BarrierCount,
    /// A predicate as result, a barrier's number, perhaps the number of threads that it waits for,
    /// and a predicate.
    BarrierVote,
    /// A result, an address, and operands of these kinds; `red` has no result.
    Atomic(&'static [Kind]),
    /// The old state or a predicate, a barrier's address, and counts of arrivals or bytes.
    Arrival,
    /// A result and perhaps a predicate, a value, the distance or source lane, the bounds, and the
    /// lanes.
    Shuffle(Kind),
    /// A predicate as result, a predicate, and the lanes.
    Vote(Kind),
    /// A result and perhaps a predicate, a value, and the lanes.
    Reduce(Kind),
    /// A result and a predicate, and the lanes.
    Elect(Kind),
    /// None: earlier accesses become visible before later ones.
    Fence,
    /// The lanes of the warp that wait for each other.
    WarpSync,
    /// A result.
    ActiveMask,
    /// A 32-bit register.
    ReadB32,
    /// A 64-bit register.
    ReadB64,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) op: Op,
    /// The section that begins with it.
    pub(crate) section: Option<&'static str>,
    pub(crate) spelling: &'static str,
    pub(crate) shape: Shape,
}

macro_rules! shape {
    ([Atomic $($type:ty),+]) => { Shape::Atomic(&[$(<$type as OperandType>::KIND),+]) };
    ([$shape:ident $type:ty]) => { Shape::$shape(<$type as OperandType>::KIND) };
    ([$shape:ident]) => { Shape::$shape };
    ({$($pred:ident),*}) => { shape!(($(shape!(@bool $pred)),*) -> bool) };
    (($($source:ty),*) -> $result:ty) => {
        Shape::Pure { result: <$result as OperandType>::KIND, sources: &[$(<$source as OperandType>::KIND),*] }
    };
    (@bool pred) => { bool };
}

macro_rules! declare {
    ({} $($(#[doc = $section:literal])? $op:ident $spelling:literal $operands:tt $(-> $result:ty)? = $run:expr;)*) => {
        /// The number of a form, by which execution dispatches.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Op { $(#[doc = $spelling] $op),* }

        /// Every form.
        pub(crate) const FORMS: &[Form] =
            &[$(Form {
                op: Op::$op,
                section: first([$($section)?]),
                spelling: $spelling,
                shape: shape!($operands $(-> $result)?),
            }),*];
    };
}
instruction_table!(declare {});

impl Op {
    /// Returns whether it accesses an mbarrier.
    #[inline(always)]
    pub(crate) fn is_of_mbarrier(self) -> bool {
        (Op::MbarInit as u16..=Op::CopyArrive as u16).contains(&(self as u16))
    }
}

/// The section that a line begins, if any.
const fn first<const N: usize>(named: [&'static str; N]) -> Option<&'static str> {
    if N == 0 { None } else { Some(named[0]) }
}

/// The forms with this spelling. There is usually one; `mov.b64` has several, told apart by their
/// operands.
pub(crate) fn forms<'o>(opcode: &'o str) -> impl Iterator<Item = &'static Form> + 'o {
    // Compares the first four letters first, because this runs for every instruction of a module.
    let may = move |spelling: &str| {
        let letters = spelling.bytes().take(4).take_while(|&letter| letter != b'{');
        letters.zip(opcode.bytes()).all(|(letter, of)| letter == of)
    };
    FORMS.iter().filter(move |form| may(form.spelling) && matches(form.spelling, opcode))
}

/// Returns whether the table has an instruction of that name: the opcode without its modifiers.
pub(crate) fn has_instruction(name: &str) -> bool {
    FORMS.iter().any(|form| {
        let first = form.spelling.split('.').next().unwrap_or_default();
        first.strip_prefix('{').map_or(first == name, |names| names.split([',', '}']).any(|other| other == name))
    })
}

/// The number of operands for sources of these kinds.
pub(crate) fn operands(sources: &[Kind]) -> usize {
    sources.iter().filter(|kind| **kind != Kind::Modifiers).count()
}

/// Returns whether `text` is one of the spellings that `pattern` describes.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((literal, rest)) = pattern.split_once('{') else { return pattern == text };
    let Some(text) = text.strip_prefix(literal) else { return false };
    let Some((group, rest)) = rest.split_once('}') else { return false };
    let continues = |choice: &str| text.strip_prefix(choice).is_some_and(|text| matches(rest, text));
    match named(group) {
        Some(choices) => choices.iter().copied().any(continues),
        None => group.split(',').any(continues),
    }
}

/// The alternatives of that name.
pub(crate) fn named(group: &str) -> Option<&'static [&'static str]> {
    SETS.iter().find(|(name, _)| *name == group).map(|(_, choices)| *choices)
}

/// Splits a pattern into parts: each is text, followed by alternatives; the last part has none.
pub(crate) fn groups(pattern: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    pattern.split('}').map(|part| match part.split_once('{') {
        None => (part, Vec::new()),
        Some((literal, group)) => (literal, named(group).map_or_else(|| group.split(',').collect(), <[_]>::to_vec)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops(opcode: &str) -> Vec<Op> {
        forms(opcode).map(|form| form.op).collect()
    }

    #[test]
    fn what_is_not_in_the_table_is_not_found() {
        for opcode in ["", "add", "add.rn.sat.f64", "add.ftz.f64", "cvt.rn.s32.f32", "ld.global", "bar.syncs", "wgmma"]
        {
            assert_eq!(ops(opcode), [], "{opcode}");
        }
    }

    #[test]
    fn one_spelling_has_one_form_for_a_number_of_sources() {
        let spelled: Vec<&Form> = FORMS.iter().filter(|form| !form.spelling.contains('{')).collect();
        for form in &spelled {
            let same = spelled.iter().filter(|other| other.spelling == form.spelling && other.shape == form.shape);
            assert_eq!(same.count(), 1, "{}", form.spelling);
        }
    }
}
