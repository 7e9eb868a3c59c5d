//! Truths, answers as people type them, and hostile files.

use super::*;

fn quiz(question: &str) -> Result<Quiz> {
    Quiz::parse(&format!("[[questions]]\nask = \"Which?\"\nanswer = \"?\"\n{question}\n"))
}

#[track_caller]
fn truth(question: &str) -> String {
    quiz(question).and_then(|quiz| quiz.questions()[0].truth()).unwrap_or_else(|error| panic!("{question}: {error:#}"))
}

#[track_caller]
fn refusal(text: &str) -> String {
    format!("{:#}", Quiz::parse(text).expect_err(text))
}

#[test]
fn layouts_answer() {
    for (question, expected) in [
        ("shape = [4, 6], views = ['t'], asks = 'strides'", "[1, 6]"),
        ("shape = [4, 6], views = ['t'], asks = 'shape'", "[6, 4]"),
        ("shape = [4, 6], views = ['t'], asks = 'is_standard_layout'", "no"),
        ("shape = [4, 6], views = ['t'], asks = 'is_contiguous'", "yes"),
        ("shape = [4, 6], views = [{ reverse = 0 }], asks = 'strides'", "[-6, 1]"),
        ("shape = [4, 6], views = [{ reverse = 0 }], asks = 'offset'", "18"),
        ("shape = [4, 6], views = [{ slice = { axis = 1, from = 1, step = 2 } }], asks = 'strides'", "[6, 2]"),
        ("shape = [4, 6], views = [{ slice = { axis = 0, from = 1, to = 3 } }], asks = 'offset'", "6"),
        ("shape = [4, 6], views = ['t'], asks = { position = [2, 3] }", "20"),
        ("shape = [1, 6], views = [{ broadcast = [4, 6] }], asks = 'overlaps'", "yes"),
        ("shape = [2, 4, 5, 3], views = [{ permute = [0, 3, 1, 2] }], asks = 'strides'", "[60, 1, 15, 3]"),
        ("shape = [], asks = 'strides'", "[]"),
    ] {
        assert_eq!(truth(&format!("layout = {{ {question} }}")), expected, "{question}");
    }
}

#[test]
fn the_model_answers() {
    for (kernel, asks, expected) in [
        ("copy", "bytes", "134217728"),
        ("naive", "ms", "0.2790 ms"),
        ("tiled", "ms", "0.07461 ms"),
        ("tiled", "bound", "shared"),
        ("padded", "ms", "0.04845 ms"),
        ("padded", "fraction", "0.91"),
        ("padded", "bound", "memory"),
        ("column_loop", "bound", "launches"),
        ("column_loop", "gbps", "13.65 GB/s"),
    ] {
        let question =
            format!("model = {{ variant = '{kernel}', shape = [4096, 4096], dtype = 'f32', asks = '{asks}' }}");
        assert_eq!(truth(&question), expected, "{kernel}");
    }
}

#[test]
fn a_part_counts_as_the_whole_for_each_element() -> Result<()> {
    let transposes = Variant::ALL.map(Kernel::Transpose);
    for kernel in [Kernel::Copy].into_iter().chain(transposes) {
        for shape in [[1024, 512], [512, 1536]] {
            let whole = count::<u32>(kernel, shape)?;
            let times = (shape[0] * shape[1] / (COUNTED * COUNTED)) as u64;
            let part = scaled(count::<u32>(kernel, [COUNTED; 2])?, times);
            let sectors = |counters: &Counters| [counters.global_load.sectors, counters.global_store.sectors];
            assert_eq!(sectors(&whole), sectors(&part), "{kernel:?} {shape:?}");
            let requests = |counters: &Counters| [counters.global_load.requests, counters.global_store.requests];
            assert_eq!(requests(&whole), requests(&part), "{kernel:?} {shape:?}");
            let passes = |counters: &Counters| counters.shared_load.wavefronts + counters.shared_store.wavefronts;
            assert_eq!(passes(&whole), passes(&part), "{kernel:?} {shape:?}");
        }
    }
    Ok(())
}

#[track_caller]
fn verdict(question: &str, answer: &str) -> Verdict {
    let quiz = quiz(question).expect("a question");
    quiz.questions()[0].verdict(answer).expect("a verdict")
}

#[test]
fn answers_are_taken_as_people_type_them() {
    for (asks, answers) in [
        ("layout = { shape = [4, 6], views = ['t'], asks = 'strides' }", &["[1, 6]", "1,6", " 1 6 ", "(1, 6)"][..]),
        ("layout = { shape = [4, 6], asks = 'is_contiguous' }", &["yes", "Yes", "true"]),
        ("layout = { shape = [4, 6], views = [{ reverse = 0 }], asks = 'offset' }", &["18"]),
        (
            "model = { variant = 'padded', shape = [4096, 4096], dtype = 'f32', asks = 'fraction' }",
            &["0.91", "91 %", "90.9%", ".9"],
        ),
        ("model = { variant = 'naive', shape = [4096, 4096], dtype = 'f32', asks = 'bound' }", &["L2", "l2"]),
        ("model = { variant = 'naive', shape = [4096, 4096], dtype = 'f32', asks = 'ms' }", &["0.28", "0.279 ms"]),
        ("model = { variant = 'copy', shape = [4096, 4096], dtype = 'f32', asks = 'bytes' }", &["134_217_728"]),
    ] {
        for answer in answers {
            assert_eq!(verdict(asks, answer), Verdict::Right, "{asks} {answer}");
        }
        for missing in ["", "?", " ? "] {
            assert!(matches!(verdict(asks, missing), Verdict::Missing(_)), "{asks}");
        }
    }
}

#[test]
fn a_wrong_answer_hears_what_is_wrong_and_not_the_truth() {
    let strides = "layout = { shape = [4, 6], views = ['t'], asks = 'strides' }";
    let offset = "layout = { shape = [4, 6], views = [{ reverse = 0 }], asks = 'offset' }";
    let fraction = "model = { variant = 'padded', shape = [4096, 4096], dtype = 'f32', asks = 'fraction' }";
    let bound = "model = { variant = 'tiled', shape = [512, 512], dtype = 'f32', asks = 'bound' }";
    for (question, answer, said) in [
        (strides, "[6, 1]", "in [6, 1], the number of axis 0 is wrong (axes count from 0)"),
        (strides, "[1, 4]", "in [1, 4], the number of axis 1 is wrong (axes count from 0)"),
        (strides, "6", "the view has more axes than [6] has numbers; give one number for each axis"),
        (strides, "one", "`one` cannot be read; type a list of whole numbers, such as [3, -1] instead"),
        (offset, "0", "0 is too small"),
        (offset, "-18", "`-18` cannot be read; type a whole number instead"),
        (fraction, "50 %", "0.5 is too small, by more than 2 % of the right fraction"),
        (fraction, "91", "`91` cannot be read; type a fraction, such as 0.5 or 50 % instead"),
        (fraction, "nan", "`nan` cannot be read; type a fraction, such as 0.5 or 50 % instead"),
        (bound, "memory", "memory is not it: something else takes longer"),
        (bound, "\u{1b}[31m", "`[31m` cannot be read; type one of memory, L2, shared, launches instead"),
    ] {
        let expected = if said.contains("cannot be read") { Verdict::Unread } else { Verdict::Wrong };
        assert_eq!(verdict(question, answer), expected(said.into()), "{question} {answer}");
    }
    assert_eq!(
        verdict(strides, "?"),
        Verdict::Missing(
            "there is no answer yet; type a list of whole numbers, such as [3, -1], in place of the `?`".into()
        )
    );
}

#[test]
fn reasons_show_each_view() -> Result<()> {
    let question =
        quiz("layout = { shape = [4, 6], views = ['t', { slice = { axis = 0, from = 2 } }], asks = 'offset' }")?;
    let reason = question.questions()[0].reason()?;
    assert!(
        reason.ends_with(
            "\nshape [4, 6] in C order: shape [4, 6], strides [6, 1], offset 0\
         \nt(): shape [6, 4], strides [1, 6], offset 0\
         \nslice(0, 2.., 1): shape [4, 4], strides [1, 6], offset 2"
        ),
        "{reason}"
    );
    let question = quiz("model = { variant = 'naive', shape = [512, 512], dtype = 'f32', asks = 'ms' }")?;
    let reason = question.questions()[0].reason()?;
    assert!(reason.contains("stores 262144 sectors in 8192 requests, and makes 0 passes"), "{reason}");
    Ok(())
}

#[test]
fn a_learners_copy_may_have_answers_without_quotes_and_in_another_order() -> Result<()> {
    let own = Quiz::parse(
        "[[questions]]\nask = 'a'\nanswer = '?'\nlayout = { shape = [4, 6], asks = 'strides' }\n\
         [[questions]]\nask = 'b'\nanswer = '?'\nlayout = { shape = [4, 6], asks = 'is_contiguous' }\n\
         [[questions]]\nask = 'c'\nanswer = '?'\nlayout = { shape = [4, 6], asks = 'offset' }\n",
    )?;
    // What the copy computes does not count.
    let copy = Quiz::parse(
        "[[questions]]\nask = 'b'\nanswer = true\nlayout = { shape = [1], asks = 'offset' }\n\
         [[questions]]\nask = 'a'\nanswer = [6, 1]\nlayout = { shape = [1], asks = 'offset' }\n",
    )?;
    let answers: Vec<_> = own.questions().iter().map(|question| copy.answer_to(question)).collect();
    assert_eq!(answers, [Some("[6,1]"), Some("true"), None]);
    for (question, answer) in own.questions().iter().zip(answers).take(2) {
        assert_eq!(question.verdict(answer.unwrap_or_default())?, Verdict::Right, "{}", question.ask());
    }
    Ok(())
}

#[test]
fn hostile_files_are_refused_with_their_line() {
    let layout = |table: &str| format!("[[questions]]\nask = 'a'\nanswer = '?'\nlayout = {{ {table} }}");
    let model = |table: &str| format!("[[questions]]\nask = 'a'\nanswer = '?'\nmodel = {{ {table} }}");
    let many = layout("shape = [1], asks = 'offset'").repeat(MAX_QUESTIONS + 1).replace("[[", "\n[[");
    for (text, said) in [
        (String::new(), "missing field `questions`"),
        ("questions = []".into(), "a quiz has 1 to 32 questions, and this has 0"),
        (many, "a quiz has 1 to 32 questions, and this has 33"),
        (" ".repeat(MAX_BYTES + 1), "a quiz has at most 65536 bytes, and this has 65537"),
        ("[[questions]]\nask = ".into(), "line 2: "),
        ("a = [".repeat(10_000), "line 1: "),
        ("a = ".to_owned() + &"[".repeat(60_000), "line 1: "),
        ("[[questions]]\nask = 'a'\nanswer = '?'".into(), "the question of line 1: give either `layout` or `model`"),
        (layout("shape = [1], asks = 'truth'"), "line 4: unknown variant `truth`"),
        (layout("shape = [1], asks = 'offset', answer = 1"), "line 4: unknown field `answer`"),
        (layout("shape = [-1], asks = 'offset'"), "line 4: "),
        (layout("shape = [9223372036854775807, 3], asks = 'offset'"), "has more elements than a layout can count"),
        (layout(&format!("shape = {:?}, asks = 'offset'", [1; 17])), "at most 16 are supported"),
        (layout("shape = [4], views = [{ reverse = 1 }], asks = 'offset'"), "axis 1 was given for shape [4]"),
        (layout("shape = [4], views = [{ slice = { axis = 7 } }], asks = 'offset'"), "axis 7 was given"),
        (layout("shape = [4], views = [{ slice = { axis = 0, step = 0 } }], asks = 'offset'"), "a step of 0"),
        (layout("shape = [4], views = [{ slice = { axis = 0, from = 3, to = 1 } }], asks = 'offset'"), "range 3..1"),
        (layout("shape = [4], views = [{ slice = { axis = 0, by = 1 } }], asks = 'offset'"), "unknown field `by`"),
        (
            layout(&format!("shape = [4], views = [{}], asks = 'offset'", "'t', ".repeat(17))),
            "`views` has 17; use at most 16",
        ),
        (layout("shape = [4], asks = { position = [4] }"), "index [4] is not in shape [4]"),
        (
            layout(&format!(
                "shape = [4], asks = 'offset' }}\nmodel = {{ {}",
                "variant = 'copy', shape = [1, 1], dtype = 'f32', asks = 'ms'"
            )),
            "give either",
        ),
        (
            model("variant = 'best', shape = [4, 4], dtype = 'f32', asks = 'ms'"),
            "`best` does not name a transpose kernel",
        ),
        (model("variant = 'copy', shape = [4, 4], dtype = 'f31', asks = 'ms'"), "f31"),
        (model("variant = 'copy', shape = [4], dtype = 'f32', asks = 'ms'"), "line 4: "),
        (model("variant = 'copy', shape = [0, 4], dtype = 'f32', asks = 'ms'"), "give extents from 1 to 512"),
        (model("variant = 'copy', shape = [513, 4], dtype = 'f32', asks = 'ms'"), "or multiples of 512 up to 65536"),
        (model("variant = 'copy', shape = [131072, 4], dtype = 'f32', asks = 'ms'"), "up to 65536"),
        (
            format!("[[questions]]\nask = '{}'\nanswer = '?'", "a".repeat(1001)),
            "`ask` has 1001 characters; use at most 1000",
        ),
    ] {
        let error = refusal(&text);
        assert!(error.contains(said), "{:.200}: {error}", text);
        assert!(error.len() < 1000 && !error.contains('\n'), "{error}");
    }
}

#[test]
fn the_lessons_questions_have_their_truths() -> Result<()> {
    let (views, how_far) =
        (include_str!("../../../lessons/05-views/quiz.toml"), include_str!("../../../lessons/14-how-far/quiz.toml"));
    for (text, truths) in [
        (views, ["[1, 6]", "20", "[60, 1, 15, 3]", "18", "no", "[0, 1]"]),
        (how_far, ["134217728", "0.04845 ms", "0.91", "shared", "0.2790 ms", "13.65 GB/s"]),
    ] {
        let quiz = Quiz::parse(text)?;
        let found = quiz.questions().iter().map(Question::truth).collect::<Result<Vec<_>>>()?;
        assert_eq!(found, truths);
        for (question, truth) in quiz.questions().iter().zip(truths) {
            assert_eq!(question.verdict(truth)?, Verdict::Right, "{}", question.ask());
            assert!(matches!(question.verdict(quiz.answer_to(question).unwrap_or("none"))?, Verdict::Missing(_)));
        }
    }
    Ok(())
}

proptest::proptest! {
    #[test]
    fn no_answer_and_no_file_panics(answer in "\\PC*", layout in "[a-z0-9={}\\[\\]', -]{0,60}") {
        for question in [
            "layout = { shape = [4, 6], views = ['t'], asks = 'strides' }",
            "layout = { shape = [4, 6], asks = 'offset' }",
            "layout = { shape = [4, 6], asks = 'overlaps' }",
            "model = { variant = 'copy', shape = [1, 1], dtype = 'u8', asks = 'bytes' }",
        ] {
            verdict(question, &answer);
        }
        for truth in [Truth::About(1.0, "ms"), Truth::Fraction(0.5), Truth::Bound(Bound::L2)] {
            if let Ok(given) = truth.read(&answer) {
                truth.verdict(&given);
            }
        }
        let _ = quiz(&format!("layout = {{ {layout} }}"));
        let _ = Quiz::parse(&answer);
    }
}
