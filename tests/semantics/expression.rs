//! Expressions as `docs/semantics.md` writes them: `sum_axis(f32[[1, nan], [3, 4]], 1)`.
//! `scripts/semantics-oracle` reads them too.
//!
//! An array is its type and its elements, by axes; `[0.1; 1000]` is as many of them, and
//! `0x7fc00000` the bits of one.

use half::{bf16, f16};
use warpstride::element::DType;

/// A function and what it is given.
#[derive(Debug)]
pub(crate) struct Expression<'t> {
    pub(crate) function: &'t str,
    pub(crate) arguments: Vec<Argument>,
}

#[derive(Debug)]
pub(crate) enum Argument {
    Array(Array),
    Number(f64),
    Type(DType),
}

/// Elements as bits, in C order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) bits: Vec<u64>,
}

impl Expression<'_> {
    pub(crate) fn array(&self, at: usize) -> &Array {
        match self.arguments.get(at) {
            Some(Argument::Array(array)) => array,
            other => panic!("argument {at} of {} is not an array: {other:?}", self.function),
        }
    }

    pub(crate) fn number(&self, at: usize) -> f64 {
        match self.arguments.get(at) {
            Some(Argument::Number(number)) => *number,
            other => panic!("argument {at} of {} is not a number: {other:?}", self.function),
        }
    }

    pub(crate) fn dtype(&self, at: usize) -> DType {
        match self.arguments.get(at) {
            Some(Argument::Type(dtype)) => *dtype,
            other => panic!("argument {at} of {} is not a type: {other:?}", self.function),
        }
    }
}

/// Reads an expression, which a test's author wrote: whatever is wrong panics.
pub(crate) fn parse(text: &str) -> Expression<'_> {
    let call = text.split_once('(').and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)));
    let (function, inside) = call.unwrap_or_else(|| panic!("no call: {text}"));
    Expression { function, arguments: items(inside).into_iter().map(argument).collect() }
}

fn argument(text: &str) -> Argument {
    let (name, elements) = text.find('[').map_or((text, None), |at| (&text[..at], Some(&text[at..])));
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
    match (dtype, elements) {
        (Some(dtype), Some(elements)) => {
            let mut bits = Vec::new();
            let shape = nested(elements, dtype, &mut bits);
            Argument::Array(Array { dtype, shape, bits })
        }
        (Some(dtype), None) => Argument::Type(dtype),
        _ => Argument::Number(text.parse().unwrap_or_else(|_| panic!("no array, type or number: {text}"))),
    }
}

/// Parts between commas that stand in no brackets.
fn items(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let outside = |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    };
    text.split(outside).map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// Appends the bits of elements in brackets, and returns their shape.
fn nested(text: &str, dtype: DType, bits: &mut Vec<u64>) -> Vec<usize> {
    let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        bits.push(self::bits(dtype, text));
        return Vec::new();
    };
    // The last semicolon is this bracket's own where no bracket closes behind it.
    let repeated = inside.rsplit_once(';').filter(|(_, times)| !times.contains(']'));
    if let Some((item, times)) = repeated {
        let times = times.trim().parse().unwrap_or_else(|_| panic!("no count: {text}"));
        let mut one = Vec::new();
        let shape = nested(item.trim(), dtype, &mut one);
        (0..times).for_each(|_| bits.extend(&one));
        return [vec![times], shape].concat();
    }
    let items = items(inside);
    let shapes: Vec<_> = items.iter().map(|item| nested(item, dtype, bits)).collect();
    assert!(shapes.windows(2).all(|pair| pair[0] == pair[1]), "rows of several lengths: {text}");
    [vec![items.len()], shapes.into_iter().next().unwrap_or_default()].concat()
}

/// The bits of a number, rounded once to the type.
pub(crate) fn bits(dtype: DType, text: &str) -> u64 {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("no bits: {text}"));
    }
    let float = || text.parse::<f64>().unwrap_or_else(|_| panic!("no number: {text}"));
    match dtype {
        DType::F16 => u64::from(f16::from_f64(float()).to_bits()),
        DType::Bf16 => u64::from(bf16::from_f64(float()).to_bits()),
        DType::F32 => u64::from(text.parse::<f32>().unwrap_or_else(|_| panic!("no number: {text}")).to_bits()),
        DType::F64 => float().to_bits(),
        _ => {
            let whole = text.parse::<i128>().unwrap_or_else(|_| panic!("no whole number: {text}"));
            let (width, signed) = (8 * dtype.width(), dtype.name().starts_with('i'));
            let (least, most) =
                if signed { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) };
            assert!((least..=most).contains(&whole), "{text} is not of type {dtype}");
            whole as u64 & (u64::MAX >> (64 - width))
        }
    }
}

/// A number as the page shows it.
pub(crate) fn shown(dtype: DType, bits: u64) -> String {
    let float = |text: String| text.replace("NaN", "nan");
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => bits.to_string(),
        DType::I8 => (bits as i8).to_string(),
        DType::I16 => (bits as i16).to_string(),
        DType::I32 => (bits as i32).to_string(),
        DType::I64 => (bits as i64).to_string(),
        DType::F16 => float(format!("{:?}", f16::from_bits(bits as u16).to_f32())),
        DType::Bf16 => float(format!("{:?}", bf16::from_bits(bits as u16).to_f32())),
        DType::F32 => float(format!("{:?}", f32::from_bits(bits as u32))),
        DType::F64 => float(format!("{:?}", f64::from_bits(bits))),
        _ => format!("{bits:#x}"),
    }
}
