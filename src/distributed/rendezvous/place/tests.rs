use super::*;

#[test]
fn an_address_has_a_host_and_a_port() {
    let of = |text: &str| Place::address(text).map(|place| place.named()).map_err(|error| error.to_string());
    assert_eq!(of("node7:29500"), Ok("at node7:29500".into()));
    assert_eq!(of("[::1]:80"), Ok("at [::1]:80".into()));
    for wrong in ["", "node7", "node7:", ":80", "node7:0", "node7:70000", "[::1:80"] {
        assert!(of(wrong).is_err_and(|sentence| sentence.contains(&format!("`{wrong}`"))), "{wrong}");
    }
}

#[test]
fn a_file_comes_back_and_other_texts_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("here");
    let addresses = own_addresses("0.0.0.0:4000".parse().expect("an address"));
    post(&path, 7, &addresses).expect("written");
    assert_eq!(Place::File(path.clone()).look_up(), Ok((addresses, 7)));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    let text = read(&path).expect("readable");
    for length in 0..text.len() - 15 {
        assert_eq!(parse(&text[..length]).filter(|(_, nonce)| *nonce != 7), None, "{length}");
    }
    for wrong in ["", "other\n", "warpstride rendezvous 1\n7\n127.0.0.1:1\n", &format!("{text}here\n")] {
        assert_eq!(parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_file_of_a_person_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("thesis");
    check_replaceable(&path).expect("nothing there");
    fs::write(&path, "words").expect("written");
    check_replaceable(&path).expect_err("words");
    check_replaceable(folder.path()).expect_err("a folder");
}

#[test]
fn random_numbers_differ() {
    assert_ne!(random(), random());
}
