//! Lists the public items of a crate, a line each, from the JSON file that rustdoc made of it, and
//! counts them on standard error.
//!
//! An item that has two paths is listed in both places, and its methods and fields at the first.
//! Methods that a trait declares are listed with the trait. A type that implements it has the line
//! `impl Trait for Type`.

use std::collections::HashSet;
use std::process::ExitCode;

use public_api::PublicItem;
use public_api::tokens::Token;

/// The kinds of items that have a page of their own in the documentation.
const WITH_A_PAGE: [&str; 7] = ["struct", "enum", "union", "trait", "fn", "const", "type"];

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: warpstride-public-api RUSTDOC.json");
        return ExitCode::from(2);
    };
    let api = public_api::Builder::from_rustdoc_json(&path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build();
    match api {
        Ok(api) => {
            list(&api.into_items().collect::<Vec<_>>());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list(items: &[PublicItem]) {
    let of = |is: fn(&PublicItem) -> bool| items.iter().filter(|item| is(item)).map(PublicItem::id).collect();
    let modules: HashSet<_> = of(|item| kind(item) == Some("mod"));
    let implementations: HashSet<_> = of(|item| is_implementation(item) && item.to_string().contains(" for "));
    let (mut listed, mut counted, mut paged) = (HashSet::new(), HashSet::new(), HashSet::new());
    for item in items {
        let is_in = |parents: &HashSet<_>| item.parent_id().is_some_and(|parent| parents.contains(&parent));
        let kind = kind(item);
        let is_member = kind.is_none() && !is_implementation(item);
        if kind == Some("fn") && is_in(&implementations)
            || is_member && counted.contains(&item.id())
            || !listed.insert(item.to_string())
        {
            continue;
        }
        println!("{item}");
        if !is_implementation(item) {
            counted.insert(item.id());
        }
        if is_in(&modules) && kind.is_some_and(|kind| WITH_A_PAGE.contains(&kind)) {
            paged.insert(item.id());
        }
    }
    let (paged, all) = (paged.len(), counted.len());
    eprintln!("public-api: {paged} items with a page, {all} with their methods, fields and variants");
}

/// `fn`, `struct` and so on; `None` for fields, variants and implementations.
fn kind(item: &PublicItem) -> Option<&str> {
    item.tokens().find_map(|token| if let Token::Kind(kind) = token { Some(kind.as_str()) } else { None })
}

fn is_implementation(item: &PublicItem) -> bool {
    item.tokens().any(|token| *token == Token::Keyword("impl".into())) && kind(item).is_none()
}
