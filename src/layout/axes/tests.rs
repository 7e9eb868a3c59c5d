use super::*;

fn of(text: &str, shape: &[usize]) -> std::result::Result<Vec<usize>, String> {
    text.parse::<Axes>().and_then(|axes| axes.of(shape)).map_err(|error| error.to_string())
}

#[test]
fn numbers_letters_and_words_are_one_order() {
    let shape = [2, 3, 4, 5];
    for text in [
        "0,2,3,1",
        "0, 2, 3, 1",
        "-4,2,-1,-3",
        "nchw->nhwc",
        " nchw -> nhwc ",
        "n c h w -> n h w c",
        "batch  channel row_1 col->batch row_1 col channel",
        "0123->0231",
    ] {
        assert_eq!(of(text, &shape), Ok(vec![0, 2, 3, 1]), "{text}");
    }
    assert_eq!(of("", &[]), Ok(vec![]));
    assert_eq!(of("->", &[]), Ok(vec![]));
    assert_eq!(of("-1", &[7]), Ok(vec![0]));
    assert_eq!(of("Nn->nN", &[7, 8]), Ok(vec![1, 0]), "case counts");
}

#[test]
fn each_mistake_is_named() {
    for (text, said) in [
        ("0,0", "`0,0` of shape [3, 4] name axis 0 twice; name each from 0 to 1 once"),
        ("1,-1", "`1,-1` of shape [3, 4] name axis 1 twice"),
        ("0", "`0` of shape [3, 4] leave out axis 1"),
        ("", "`` of shape [3, 4] leave out axis 0"),
        ("0,2", "`0,2` of shape [3, 4] name axis 2, and it has 2 axes"),
        ("0,-3", "`0,-3` of shape [3, 4] name axis -3"),
        ("abc->cba", "`abc->cba` are 3 axes and shape [3, 4] has 2"),
        ("aa->aa", "axis `a` stands twice"),
        ("ab->ba a", "`ab` stands before"),
        ("ab->b", "axis `a` stands before the arrow and not behind it"),
        ("ab->abc", "axis `c` stands behind the arrow and not before it"),
        ("a b -> b c", "axis `a` stands before the arrow"),
        ("a,b->b,a", "`,` is not the name of an axis"),
        ("a b -> (b a)", "`(b` is not the name"),
        ("ab->ba->ab", "`-` is not the name"),
        ("ab", "`ab` is not the number of an axis"),
        ("0 1", "`0 1` is not the number of an axis"),
        ("0,,1", "`` is not the number"),
        ("+1,0", "`+1` is not the number"),
        ("-0,1", "`-0` is not the number"),
        ("0,99999999999999999999", "is not the number"),
        ("0,-9223372036854775808", "name axis -9223372036854775808"),
    ] {
        let error = of(text, &[3, 4]).unwrap_err();
        assert!(error.contains(said), "{text}: {error}");
    }
}
