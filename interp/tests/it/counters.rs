//! The table of counters, beside the page and the script that repeat it.

use warpstride_interp::counters::table::{self, Access, Figure, Least};

const PAGE: &str = include_str!("../../../docs/counters.md");
const SCRIPT: &str = include_str!("../../../scripts/counters");

/// The figures of the kinds that have them, a kind of memory each: of global and of shared memory.
fn kinds() -> [&'static Access; 2] {
    ["global_load", "shared_load"].map(|name| table::accesses().find(|access| access.name == name).expect("a kind"))
}

#[test]
fn the_page_has_the_table() {
    let mut page = "| accesses | | in metrics |\n|---|---|---|\n".to_owned();
    for Access { name, doc, space, operations, .. } in table::accesses() {
        page += &format!("| `{name}` | {doc} | `{space}`, `{}` |\n", operations[0]);
    }
    assert!(PAGE.contains(&page), "docs/counters.md needs this table:\n{page}");
    for access in kinds() {
        let mut page = "| counter | unit | counts | Nsight Compute |\n|---|---|---|---|\n".to_owned();
        for Figure { name, doc, unit, least, metric } in access.figures {
            page += &format!("| `{name}` | {unit} |{doc} | `{metric}` |\n");
            if let Least::Ideal(metric) = least {
                let metric = metric.replace("{space}", access.space);
                page += &format!("| ideal {name} | {unit} | The fewest possible for these accesses. | `{metric}` |\n");
            }
        }
        assert!(PAGE.contains(&page), "docs/counters.md needs this table:\n{page}");
    }
}

#[test]
fn the_script_asks_for_the_metrics() {
    for Access { name, space, operations, .. } in table::accesses() {
        let line = format!("    \"{name}\": (\"{space}\", \"{}\"),\n", operations[0]);
        assert!(SCRIPT.contains(&line), "scripts/counters needs this line:\n{line}");
    }
    for (access, name) in kinds().into_iter().zip(["CACHED", "BANKED"]) {
        let lines: String =
            access.figures.iter().map(|it| format!("    \"{}\": \"{}\",\n", it.name, it.metric)).collect();
        let lines = format!("{name} = {{\n{lines}}}\n");
        assert!(SCRIPT.contains(&lines), "scripts/counters needs these lines:\n{lines}");
    }
}
