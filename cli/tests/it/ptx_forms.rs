//! The coverage page, and what a file uses.

use std::fs;

use serde_json::{Value, json};

use super::{Folder, warpstride};

#[test]
fn the_committed_page_is_what_the_table_prints() {
    let path = crate::repository().join("docs/ptx-coverage.md");
    let page = fs::read_to_string(path).expect("the page is there");
    let printed = warpstride(["ptx-forms"]).succeeded().stdout;
    assert!(page == printed, "the table has changed; run `cargo run --quiet -- ptx-forms > docs/ptx-coverage.md`");
}

#[test]
fn every_form_is_listed_as_json_too() {
    let document = warpstride(["ptx-forms", "--json"]).succeeded().json();
    let forms = document["forms"].as_array().expect("forms");
    let wide = forms.iter().find(|form| form["pattern"] == "mad.wide.u16").expect("it is there");
    assert_eq!((&wide["section"], &wide["operands"]), (&json!("Integer arithmetic"), &json!("b16, b16, b32 -> b32")));
    assert!(document["sets"]["vector"].as_array().expect("a set").contains(&json!(".v4")));
}

#[test]
fn what_a_file_lacks_is_named_with_kernel_and_line() {
    let text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<3>;\n\
        mov.u32 %r1, 1;\nwgmma.fence.sync.aligned;\nwgmma.wait.sync 1;\n}\n.visible .entry fine() { ret; }\n";
    let folder = Folder::with("k.ptx", text);
    let parts = ["k: 3 forms, 2 not supported", "line 7: `wgmma.fence.sync.aligned`: ", "fine: 1 form, supported"];
    let told = folder.run("ptx-forms k.ptx").ended(0, &parts, &[]).stdout;
    assert!(told.ends_with("the software GPU supports 1 of 2 kernels, with 4 forms in all\n"), "{told}");
    let document = folder.run("ptx-forms k.ptx --json").succeeded().json();
    let forms = &document["kernels"][0]["forms"];
    assert_eq!(forms[0], json!({ "form": "mov.u32", "lines": [6], "refused": [] }));
    assert_eq!(forms[2]["refused"][0]["line"], 8);
    assert_eq!(document["kernels"][1]["unsupported"], Value::Null);
}

#[test]
fn no_file_and_no_ptx_are_one_sentence() {
    warpstride(["ptx-forms", "/nowhere/k.ptx"]).failed(&["cannot read /nowhere/k.ptx"]);
    Folder::with("k.ptx", ".version 7.0\n.visible .entry k( {").run("ptx-forms k.ptx").failed(&["cannot parse"]);
}
