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
    /// Elements that are not numbers of a width that is moved.
    Elements(String),
}

type Result<T> = std::result::Result<T, Refusal>;

impl Header {
    /// Reads a header of format version `version`.
    pub(super) fn parse(bytes: &[u8], version: u8) -> Result<Self> {
        let text = str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
        let text = text.ok_or_else(|| malformed("it has characters of no element type and no number"))?;
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

    /// `'descr'` or `"descr"`; nothing that is written here needs an escape.
    fn text(&mut self) -> Result<&'t str> {
        self.space();
        let quote = self.rest.chars().next().filter(|quote| "'\"".contains(*quote));
        let Some(quote) = quote else { return Err(self.unexpected("a text")) };
        match self.rest[1..].split_once(quote) {
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

/// The element type that `descr` names, and its spelling as NumPy would write it.
fn element_type(descr: &str) -> Result<(DType, String)> {
    let other = || Refusal::Elements(descr.to_owned());
    let (order, kind) = match descr.chars().next() {
        Some(order @ ('<' | '>' | '=' | '|')) => (order, &descr[1..]),
        _ => ('=', descr),
    };
    let dtype = match kind {
        // A truth value moves as a byte.
        "b1" | "u1" => DType::U8,
        "i1" => DType::I8,
        "u2" => DType::U16,
        "i2" => DType::I16,
        "f2" => DType::F16,
        "u4" => DType::U32,
        "i4" => DType::I32,
        "f4" => DType::F32,
        "u8" => DType::U64,
        "i8" => DType::I64,
        "f8" => DType::F64,
        "c8" => DType::C64,
        "c16" => DType::C128,
        _ => return Err(other()),
    };
    let native = if cfg!(target_endian = "big") { '>' } else { '<' };
    let order = match order {
        // One byte has no order, and NumPy says so.
        _ if dtype.width() == 1 => '|',
        '=' | '|' => native,
        order => order,
    };
    Ok((dtype, format!("{order}{kind}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Header> {
        Header::parse(text.as_bytes(), 1)
    }

    fn of(descr: &str, shape: &str) -> Result<Header> {
        parsed(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"))
    }

    #[test]
    fn headers_of_every_writer_are_read() {
        let header =
            |shape: &[u64]| Ok(Header { dtype: DType::F32, descr: "<f4".into(), fortran: false, shape: shape.into() });
        assert_eq!(of("'<f4'", "(3, 4)"), header(&[3, 4]));
        assert_eq!(of("'<f4'", "(3L, 4L)"), header(&[3, 4]), "Python 2");
        assert_eq!(of("\"=f4\"", "(3,4,)"), header(&[3, 4]));
        assert_eq!(of("'f4'", "( )"), header(&[]));
        assert_eq!(of("'|f4'", "(3 ,)"), header(&[3]));
        assert_eq!(of("'<f4'", "(00, 4)"), header(&[0, 4]));
        assert_eq!(parsed(" \t{'shape':(0,),\n'descr':'<f4',\r\n'fortran_order':False}\n \n"), header(&[0]));
        assert!(parsed("{'shape':(0,), 'descr':'<f4', 'fortran_order': True}").is_ok_and(|header| header.fortran));
        let bool = of("'|b1'", "(2,)").unwrap();
        assert_eq!((bool.dtype, &*bool.descr), (DType::U8, "|b1"));
        assert_eq!(of("'>c16'", "()").unwrap().descr, ">c16");
        assert_eq!(of("'<u1'", "()").unwrap().descr, "|u1");
    }

    #[test]
    fn what_numpy_refuses_is_refused() {
        let malformed = |text: &str, why: &str| match parsed(text) {
            Err(Refusal::Malformed(said)) => assert!(said.contains(why), "{text}: {said}"),
            other => panic!("{text}: {other:?}"),
        };
        let whole = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
        assert!(parsed(whole).is_ok());
        malformed("", "`{` is missing at its end");
        malformed("[]", "`{` is missing before `[]`");
        malformed("\n {", "a text is missing");
        malformed(&whole.replace("'shape'", "'form'"), "key 'form'");
        malformed(&whole.replace(", }", ", 'x': 1}"), "key 'x'");
        malformed(&whole.replace(", }", ", 'shape': (3, 4)}"), "'shape' twice");
        malformed("{'descr': '<f4', 'fortran_order': False}", "no 'shape'");
        malformed("{'descr': '<f4', 'shape': ()}", "no 'fortran_order'");
        malformed("{'fortran_order': False, 'shape': ()}", "no 'descr'");
        malformed(&whole.replace("False", "0"), "True or False");
        malformed(&whole.replace("False", "Falsehood"), "True or False");
        malformed(&whole.replace("(3, 4)", "[3, 4]"), "`(` is missing");
        malformed(&whole.replace("(3, 4)", "(3)"), "not a tuple");
        malformed(&whole.replace("(3, 4)", "(-3, 4)"), "negative");
        malformed(&whole.replace("(3, 4)", "(3.0, 4)"), "`)` is missing");
        malformed(&whole.replace("(3, 4)", "(3, 4"), "an extent is missing before `}`");
        malformed(&whole.replace("(3, 4)", "(03, 4)"), "an extent");
        malformed(&whole.replace("(3, 4)", "(3_0, 4)"), "an extent");
        malformed(&whole.replace("(3, 4)", "(3l, 4)"), "an extent");
        malformed(&whole.replace("(3, 4)", "(99999999999999999999999, 4)"), "beyond any memory");
        malformed(&whole.replace("(3, 4)", &format!("({})", "1,".repeat(65))), "more than 64 axes");
        malformed(&format!("{whole} x"), "follows its dictionary");
        malformed(&format!("{whole}\0"), "follows its dictionary");
        malformed(&whole.replace("<f4", "\\x3cf4"), "without escapes");
        malformed(&whole.replace("<f4", "\u{e9}"), "characters");
        malformed(&whole.replace("'<f4'", "4"), "a text");
        assert!(matches!(Header::parse(whole.replace("3,", "3L,").as_bytes(), 3), Err(Refusal::Malformed(_))));
        assert_eq!(of("[('a', '<f4')]", "(3,)"), Err(Refusal::Structured));
        assert_eq!(of("('<f4', (2,))", "(3,)"), Err(Refusal::Structured));
        for descr in ["|O", "<U3", "<M8[s]", "f3", "<f16", "float32", "", "<", "<b2", "V4", "é"] {
            if descr.is_ascii() {
                assert_eq!(of(&format!("'{descr}'"), "(3,)"), Err(Refusal::Elements(descr.into())));
            }
        }
    }

    #[test]
    fn any_header_is_read_or_refused() {
        // Every text at one edit's distance, and at some more: none panics, and none takes long.
        let whole = "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4), }\n".as_bytes();
        let mut seed = 1_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let mut accepted = 0;
        for round in 0..200_000 {
            let mut text = whole.to_vec();
            for _ in 0..=round % 3 {
                let at = random(text.len());
                match random(3) {
                    0 => drop(text.remove(at)),
                    1 => text[at] = random(256) as u8,
                    _ => text.insert(at, whole[random(whole.len())]),
                }
            }
            accepted += usize::from(Header::parse(&text, 1 + (round % 3) as u8).is_ok());
        }
        assert!((1_000..100_000).contains(&accepted), "{accepted} were accepted");
        for mark in ["[", "{", "(", "'", "{'descr': (", "{'shape': (1,"] {
            assert!(Header::parse(mark.repeat(2_000).as_bytes(), 1).is_err());
        }
    }
}
