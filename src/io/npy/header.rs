//! The header of a `.npy` file: a Python dictionary, read as NumPy reads it and no further.
//!
//! NumPy evaluates any literal of Python. This takes what `numpy.save` has written since Python 2,
//! in any order and spacing, and the spellings of an element type that NumPy takes for the same;
//! what NumPy refuses, it refuses. `scripts/numpy-oracle` compares the two.

use crate::element::DType;
use crate::error::printable_line;

/// Longest header in characters; NumPy's own limit.
pub(super) const MAX_HEADER: u64 = 10_000;
/// Most axes; NumPy's own limit.
const MAX_AXES: usize = 64;

/// The facts that a header states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: DType,
    /// The element type as NumPy would write it: `<f4`.
    pub(super) descr: String,
    /// True if the first axis is the one that runs fastest.
    pub(super) fortran: bool,
    pub(super) shape: Vec<u64>,
}

/// Why it is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is not one that NumPy reads, or writes.
    Malformed(String),
    /// Elements of several members, or of several elements.
    Structured,
    /// Elements that are not moved, with what can be done about them.
    Elements { descr: String, advice: &'static str },
}

/// Advice for other numbers, times and objects.
const ASTYPE: &str = "convert it with astype to a number of 1 to 8 bytes or a complex number";
/// Advice for texts and for bytes without a type.
const VIEW: &str = "save its bytes along one more axis, as `a.view('u1').reshape(a.shape + (-1,))`";

type Result<T> = std::result::Result<T, Refusal>;

impl Header {
    /// Reads a header of format version `version`.
    pub(super) fn parse(bytes: &[u8], version: u8) -> Result<Self> {
        // Versions 1 and 2 are in Latin-1.
        let text = match version {
            ..3 => bytes.iter().copied().map(char::from).collect(),
            _ => String::from_utf8(bytes.into()).map_err(|_| malformed("it is not UTF-8"))?,
        };
        // Python 2, whose long numbers end in L, wrote no files of version 3.
        let mut reader = Reader { rest: text.trim_start_matches([' ', '\t']), has_longs: version < 3 };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        reader.expect("{")?;
        while !reader.take("}") {
            let key = reader.text()?;
            reader.expect(":")?;
            let is_new = match key {
                "descr" => descr.replace(reader.descr()?).is_none(),
                "fortran_order" => fortran.replace(reader.truth()?).is_none(),
                "shape" => shape.replace(reader.shape()?).is_none(),
                _ => return Err(malformed(format!("it has a key '{}'", printable_line(key)))),
            };
            if !is_new {
                return Err(malformed(format!("it has '{key}' twice")));
            }
            if !reader.take(",") {
                reader.expect("}")?;
                break;
            }
        }
        reader.space();
        if !reader.rest.is_empty() {
            return Err(malformed("something follows its dictionary"));
        }
        let missing = |key: &str| malformed(format!("it has no '{key}'"));
        let (dtype, descr) = element_type(descr.ok_or_else(|| missing("descr"))?)?;
        let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
        Ok(Self { dtype, descr, fortran, shape: shape.ok_or_else(|| missing("shape"))? })
    }
}

fn malformed(why: impl Into<String>) -> Refusal {
    Refusal::Malformed(why.into())
}

/// The part of a header that was not read yet.
struct Reader<'t> {
    rest: &'t str,
    has_longs: bool,
}

impl<'t> Reader<'t> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, mark: &str) -> bool {
        self.space();
        let behind = self.rest.strip_prefix(mark);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> Refusal {
        match self.rest.split_whitespace().next() {
            Some(found) => malformed(format!("{wanted} is missing before `{:.20}`", printable_line(found))),
            None => malformed(format!("{wanted} is missing at its end")),
        }
    }

    /// `'descr'`, `"descr"` or Python 2's `u'descr'`; nothing that is written here needs an escape.
    fn text(&mut self) -> Result<&'t str> {
        self.space();
        let plain = self.rest.strip_prefix('u').unwrap_or(self.rest);
        let quote = plain.chars().next().filter(|quote| "'\"".contains(*quote));
        let Some(quote) = quote else { return Err(self.unexpected("a text")) };
        match plain[1..].split_once(quote) {
            Some((text, rest)) if !text.contains(['\\', '\n', '\r']) => {
                self.rest = rest;
                Ok(text)
            }
            _ => Err(self.unexpected("a text without escapes")),
        }
    }

    fn descr(&mut self) -> Result<&'t str> {
        self.space();
        if self.rest.starts_with(['[', '(']) { Err(Refusal::Structured) } else { self.text() }
    }

    fn truth(&mut self) -> Result<bool> {
        let (word, rest) = self.word();
        let truth = match word {
            "True" => true,
            "False" => false,
            _ => return Err(self.unexpected("True or False")),
        };
        self.rest = rest;
        Ok(truth)
    }

    /// `()`, `(3,)` or `(3, 4)`: in Python, `(3)` is a number.
    fn shape(&mut self) -> Result<Vec<u64>> {
        let mut extents = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            extents.push(self.extent()?);
            if extents.len() > MAX_AXES {
                return Err(malformed(format!("it has more than {MAX_AXES} axes")));
            }
            if !self.take(",") {
                self.expect(")")?;
                if extents.len() == 1 {
                    return Err(malformed("its shape is a number and not a tuple"));
                }
                break;
            }
        }
        Ok(extents)
    }

    fn extent(&mut self) -> Result<u64> {
        self.space();
        if self.rest.starts_with('-') {
            return Err(malformed("it has a negative extent"));
        }
        let (word, rest) = self.word();
        let digits = if self.has_longs { word.strip_suffix('L').unwrap_or(word) } else { word };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // Python 3 takes 00 and refuses 03.
        if !is_number || (digits.starts_with('0') && digits.bytes().any(|digit| digit != b'0')) {
            return Err(self.unexpected("an extent"));
        }
        let extent = digits.parse().map_err(|_| malformed(format!("its extent {digits:.40} is beyond any memory")))?;
        self.rest = rest;
        Ok(extent)
    }

    /// Letters and digits that come next, and what follows them.
    fn word(&mut self) -> (&'t str, &'t str) {
        self.space();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        self.rest.split_at(end)
    }
}

/// Returns the element type that `descr` names, as `numpy.dtype` takes it, and its spelling as
/// NumPy would write it. A type of so many bytes (`V2`) keeps its order, by which other writers
/// tell their own types.
fn element_type(descr: &str) -> Result<(DType, String)> {
    // A list of types, or a type with a shape.
    if descr.contains(',') || descr.starts_with(|first: char| first == '(' || first.is_ascii_digit()) {
        return Err(Refusal::Structured);
    }
    let (order, name) = match descr.chars().next() {
        Some(order @ ('<' | '>' | '=' | '|')) => (Some(order), &descr[1..]),
        _ => (None, descr),
    };
    let named = kind_and_width(name).or_else(|| names_kind(name).filter(|_| order.is_none()));
    let Some((kind, width)) = named else {
        return Err(malformed(format!("NumPy has no element type '{}'", printable_line(descr))));
    };
    let other = |advice| Err(Refusal::Elements { descr: descr.to_owned(), advice });
    let dtype = match (kind, width) {
        // A truth value moves as a byte, and bytes without a type as a number.
        ('b' | 'u' | 'V', 1) => DType::U8,
        ('i', 1) => DType::I8,
        ('u' | 'V', 2) => DType::U16,
        ('i', 2) => DType::I16,
        ('f', 2) => DType::F16,
        ('u' | 'V', 4) => DType::U32,
        ('i', 4) => DType::I32,
        ('f', 4) => DType::F32,
        ('u' | 'V', 8) => DType::U64,
        ('i', 8) => DType::I64,
        ('f', 8) => DType::F64,
        ('c', 8) => DType::C64,
        ('c' | 'V', 16) => DType::C128,
        ('V' | 'S' | 'U', _) => return other(VIEW),
        _ => return other(ASTYPE),
    };
    let native = if cfg!(target_endian = "big") { '>' } else { '<' };
    let order = match order.unwrap_or('=') {
        order @ ('<' | '>') if kind == 'V' => order,
        // One byte has no order, and NumPy says so.
        _ if width == 1 || kind == 'V' => '|',
        '=' | '|' => native,
        order => order,
    };
    Ok((dtype, format!("{order}{kind}{width}")))
}

/// The bytes of C's `long` and of a pointer, which NumPy's names depend on.
const LONG: usize = size_of::<std::ffi::c_long>();
const POINTER: usize = size_of::<usize>();

/// Returns the kind and the bytes of a type by its letter, or by its kind and a number (`f4`). The
/// kinds are NumPy's: `b` for truth values, `i`, `u`, `f`, `c`, and others that are not moved. The
/// names of times belong here, because NumPy takes an order before them and a unit behind.
fn kind_and_width(name: &str) -> Option<(char, usize)> {
    match name.split_once('[').map_or(name, |(name, _)| name) {
        "datetime64" => return Some(('M', 8)),
        "timedelta64" => return Some(('m', 8)),
        _ => {}
    }
    let mut letters = name.chars();
    let letter = letters.next()?;
    if !letters.as_str().is_empty() {
        return numbered(letter, letters.as_str());
    }
    Some(match letter {
        '?' => ('b', 1),
        'b' => ('i', 1),
        'B' => ('u', 1),
        'h' => ('i', 2),
        'H' => ('u', 2),
        'i' => ('i', 4),
        'I' => ('u', 4),
        'l' => ('i', LONG),
        'L' => ('u', LONG),
        'q' => ('i', 8),
        'Q' => ('u', 8),
        'n' | 'p' => ('i', POINTER),
        'N' | 'P' => ('u', POINTER),
        'e' => ('f', 2),
        'f' => ('f', 4),
        'd' => ('f', 8),
        'g' => ('f', 16),
        'F' => ('c', 8),
        'D' => ('c', 16),
        'G' => ('c', 32),
        'c' => ('S', 1),
        'a' | 'S' => ('S', 0),
        'U' | 'V' | 'M' | 'm' | 'O' => (letter, 0),
        _ => return None,
    })
}

/// Returns the kind and the bytes of a type such as `f4`, whose number may be written as C reads
/// one. Times have their unit behind it.
fn numbered(kind: char, number: &str) -> Option<(char, usize)> {
    let number = number.split_once('[').filter(|_| "Mm".contains(kind)).map_or(number, |(number, _)| number);
    let digits = number.trim_start_matches([' ', '\t', '\n', '\r']);
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let width = match digits.bytes().all(|digit| digit.is_ascii_digit()) {
        true => digits.parse().ok()?,
        false => return None,
    };
    let is_one = match kind {
        'b' => width == 1,
        'i' | 'u' => [1, 2, 4, 8].contains(&width),
        'f' => [2, 4, 8, 12, 16].contains(&width),
        'c' => [8, 16, 24, 32].contains(&width),
        'M' | 'm' => width == 8,
        'O' | 'S' | 'a' | 'U' | 'V' => true,
        _ => false,
    };
    is_one.then_some((if kind == 'a' { 'S' } else { kind }, width))
}

/// Returns the kind and the bytes of a type by its name, before which NumPy takes no order.
fn names_kind(name: &str) -> Option<(char, usize)> {
    Some(match name {
        "bool" | "bool_" => ('b', 1),
        "int8" | "byte" => ('i', 1),
        "uint8" | "ubyte" => ('u', 1),
        "int16" | "short" => ('i', 2),
        "uint16" | "ushort" => ('u', 2),
        "int32" | "intc" => ('i', 4),
        "uint32" | "uintc" => ('u', 4),
        "int64" | "longlong" => ('i', 8),
        "uint64" | "ulonglong" => ('u', 8),
        "long" => ('i', LONG),
        "ulong" => ('u', LONG),
        "int" | "int_" | "intp" => ('i', POINTER),
        "uint" | "uintp" => ('u', POINTER),
        "float16" | "half" => ('f', 2),
        "float32" | "single" => ('f', 4),
        "float64" | "double" | "float" => ('f', 8),
        "float128" | "longdouble" => ('f', 16),
        "complex64" | "csingle" => ('c', 8),
        "complex128" | "cdouble" | "complex" => ('c', 16),
        "complex256" | "clongdouble" => ('c', 32),
        "bytes" | "bytes_" => ('S', 0),
        "str" | "str_" | "unicode" => ('U', 0),
        "void" => ('V', 0),
        "object" | "object_" => ('O', 0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
