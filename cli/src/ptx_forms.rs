//! `warpstride ptx-forms [FILE.ptx]`: lists the PTX that the software GPU has, or the forms that a
//! file uses and those that are missing.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use warpstride::interp::coverage::{self, Form, Survey, Use};

use super::output::Output;
use super::{args, ptx_file};
use crate::run::table::Table;
use warpstride::error::counted;

/// Spellings of a form that are written out; more stay a pattern.
const WRITTEN_OUT: usize = 12;

pub(super) fn run(args: &args::PtxForms, output: &Output) -> Result<()> {
    let Some(file) = &args.file else { return output.file(&page(), page_json()) };
    let name = file.display();
    let text = ptx_file::read(file)?;
    let surveys = coverage::survey(&text).with_context(|| format!("cannot parse {name}"))?;
    output.result(&survey_text(&surveys), survey_json(&surveys))
}

/// The coverage page, as Markdown.
fn page() -> String {
    let mut page = String::from(
        "# What PTX the software GPU has\n\n\
         Printed from the instruction table by `warpstride ptx-forms > docs/ptx-coverage.md`; a form that is not here is \
         refused at launch,\nwith the instruction, kernel and line. `warpstride ptx-forms FILE.ptx` tells which forms a \
         file needs.\n\n\
         Operands are those of a lane, sources and result; the widths are what is read and written. Where a form has many \
         spellings they\nstay a pattern, alternatives in braces, and some alternatives have names:\n",
    );
    for (name, alternatives) in coverage::sets() {
        let shown = alternatives.iter().map(|text| if text.is_empty() { "nothing" } else { *text });
        let _ = write!(page, "\n- `{{{name}}}`: {}", shown.collect::<Vec<_>>().join(" "));
    }
    page.push('\n');
    let mut section = "";
    for form in coverage::forms() {
        if form.section() != section {
            section = form.section();
            let _ = write!(page, "\n## {section}\n\n| form | operands |\n|---|---|\n");
        }
        let _ = writeln!(page, "| {} | {} |", spellings(&form).join(" "), form.operands());
    }
    page
}

/// As code, written out where there are not too many.
fn spellings(form: &Form) -> Vec<String> {
    if form.spellings() > WRITTEN_OUT {
        return vec![format!("`{}`", form.pattern())];
    }
    (0..form.spellings()).map(|number| format!("`{}`", form.spelling(number))).collect()
}

fn page_json() -> Value {
    let sets: serde_json::Map<String, Value> =
        coverage::sets().map(|(name, alternatives)| (name.to_owned(), json!(alternatives))).collect();
    let forms = coverage::forms().map(
        |form| json!({ "section": form.section(), "pattern": form.pattern(), "operands": form.operands().to_string() }),
    );
    json!({ "sets": sets, "forms": forms.collect::<Vec<_>>() })
}

fn survey_text(surveys: &[Survey]) -> String {
    let mut text = String::new();
    for Survey { kernel, unsupported, uses } in surveys {
        let missing = uses.iter().filter(|used| !used.refused.is_empty()).count();
        let verdict = match (unsupported, missing) {
            (None, _) => "supported".to_owned(),
            (Some(reason), 0) => reason.clone(),
            (Some(_), missing) => format!("{missing} not supported"),
        };
        let mut table = Table::new(&["form", "uses", "refused"]);
        for Use { opcode, lines, refused } in uses {
            table.add_row([opcode, &lines.len().to_string(), &refused.len().to_string()]);
        }
        let _ = writeln!(text, "{kernel}: {}, {verdict}\n{table}", counted(uses.len(), "form"));
        for refused in uses.iter().flat_map(|used| &used.refused) {
            let _ = writeln!(text, "line {}: `{}`: {}", refused.line, refused.instruction, refused.reason);
        }
        text.push('\n');
    }
    let all: BTreeSet<&str> = surveys.iter().flat_map(|survey| &survey.uses).map(|used| &*used.opcode).collect();
    let supported = surveys.iter().filter(|survey| survey.unsupported.is_none()).count();
    let _ = writeln!(
        text,
        "the software GPU supports {supported} of {}, with {} in all",
        counted(surveys.len(), "kernel"),
        counted(all.len(), "form")
    );
    text
}

fn survey_json(surveys: &[Survey]) -> Value {
    let refused = |used: &Use| {
        let one = |refused: &coverage::Refused| json!({ "line": refused.line, "instruction": refused.instruction, "reason": refused.reason });
        used.refused.iter().map(one).collect::<Vec<_>>()
    };
    let uses = |survey: &Survey| {
        let one = |used: &Use| json!({ "form": used.opcode, "lines": used.lines, "refused": refused(used) });
        survey.uses.iter().map(one).collect::<Vec<_>>()
    };
    let kernel =
        |survey: &Survey| json!({ "kernel": survey.kernel, "unsupported": survey.unsupported, "forms": uses(survey) });
    json!({ "kernels": surveys.iter().map(kernel).collect::<Vec<_>>() })
}
