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
    assert_eq!(of("u'<f4'", "(3, 4)"), header(&[3, 4]), "Python 2");
}

/// Pairs of a spelling and `numpy.dtype(spelling).str`, from NumPy 2 on Linux.
#[test]
fn types_are_spelled_as_numpy_takes_them() {
    let spelled = "? |b1 <? |b1 bool |b1 |b01 |b1 b |i1 >b |i1 B |u1 byte |i1 uint8 |u1 h <i2 >h >i2 H <u2 short <i2 i <i4 \
                   =i <i4 I <u4 intc <i4 q <i8 >Q >u8 int64 <i8 ulonglong <u8 e <f2 half <f2 f <f4 <f <f4 >f >f4 f04 <f4 \
                   f+4 <f4 single <f4 float32 <f4 d <f8 >d >f8 double <f8 float <f8 F <c8 complex64 <c8 >D >c16 cdouble <c16 \
                   complex <c16 V1 |V1 |V2 |V2 =V4 |V4 V08 |V8 |V16 |V16";
    let words: Vec<&str> = spelled.split_whitespace().collect();
    for pair in words.chunks(2) {
        assert_eq!(of(&format!("'{}'", pair[0]), "(3,)").map(|header| header.descr), Ok(pair[1].into()), "{pair:?}");
    }
    for (long, pointer) in [("l", "p"), ("L", "P"), ("long", "intp"), ("ulong", "uintp")] {
        let width = |name: &str| of(&format!("'{name}'"), "(3,)").unwrap().dtype.width();
        assert_eq!((width(long), width(pointer)), (LONG, POINTER));
    }
    // `ml_dtypes` writes bf16 so.
    assert_eq!(of("'<V2'", "(3,)").map(|header| (header.dtype, header.descr)), Ok((DType::U16, "<V2".into())));
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
    malformed(&whole.replace("<f4", "\u{e9}"), "no element type '\u{c3}\u{a9}'");
    malformed(&whole.replace("'<f4'", "4"), "a text");
    assert!(matches!(Header::parse(whole.replace("3,", "3L,").as_bytes(), 3), Err(Refusal::Malformed(_))));
    assert_eq!(of("[('a', '<f4')]", "(3,)"), Err(Refusal::Structured));
    assert_eq!(of("('<f4', (2,))", "(3,)"), Err(Refusal::Structured));
    for descr in ["<f4,<f4", "f4,", "2f4", "(2,)f4"] {
        assert_eq!(of(&format!("'{descr}'"), "(3,)"), Err(Refusal::Structured), "{descr}");
    }
    let structured = "{'descr': [('\u{434}', '<f8')], 'fortran_order': False, 'shape': (2,), }";
    assert_eq!(Header::parse(structured.as_bytes(), 3), Err(Refusal::Structured));
    assert_eq!(Header::parse(b"{'descr': [('\xe4', '<f8')]", 1), Err(Refusal::Structured));
    assert_eq!(Header::parse(b"{'descr': '\xe4'}", 3), Err(super::malformed("it is not UTF-8")));
    for descr in
        ["f3", "<b2", "<i16", "", "<", "<<f4", "<float32", "?1", "f4 ", " f4", "f-4", "F8", "d8", "bool8", "float_"]
    {
        malformed(&whole.replace("<f4", descr), "NumPy has no element type");
    }
    let refused = |descr: &str, advice| {
        let elements = Refusal::Elements { descr: descr.into(), advice };
        assert_eq!(of(&format!("'{descr}'"), "(3,)"), Err(elements));
    };
    let times = ["<M8[s]", "m8[ns]", "datetime64[s]", "<timedelta64"];
    for descr in ["|O", "O8", "<f16", "g", "longdouble", "<c32"].into_iter().chain(times) {
        refused(descr, ASTYPE);
    }
    for descr in ["<U3", "|S4", "S", "V3", "|V32", "c"] {
        refused(descr, VIEW);
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
