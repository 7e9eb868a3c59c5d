//! The description of a cluster: a file of TOML, or a name.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;
use warpstride::distributed::cluster::{Cluster, Link, Port};
use warpstride::error::printable_line;

use super::super::{input, refuse};

/// Most bytes of a file.
const MAX_BYTES: usize = 1 << 20;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    hosts: usize,
    gpus_per_host: usize,
    /// GB/s that a GPU reads and writes together.
    memory_gbps: f64,
    link: LinkTable,
    network: NetworkTable,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkTable {
    gbps: f64,
    start_us: f64,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkTable {
    gbps: f64,
    start_us: f64,
    per: Per,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Per {
    Gpu,
    Host,
}

/// Returns the cluster that `--cluster` names: `h100x8:HOSTS`, or a file.
pub(super) fn named(name: &OsStr) -> Result<Cluster> {
    match name.to_str().and_then(|name| name.strip_prefix("h100x8:")) {
        Some(hosts) => match hosts.parse() {
            Ok(hosts) => Ok(Cluster::h100x8(hosts)?),
            Err(_) => refuse!(
                InvalidArgument,
                "`{hosts}` of h100x8 is not a number of hosts; give a whole number, such as h100x8:64"
            ),
        },
        None => read(Path::new(name)),
    }
}

fn read(path: &Path) -> Result<Cluster> {
    let text = input::text(path, MAX_BYTES, "the description of a cluster", input::SAVE_AS_TEXT)?;
    let table: Table = match toml::from_str(&text) {
        Ok(table) => table,
        Err(error) => refuse!(InvalidArgument, "{}", refusal(path, &text, error)),
    };
    let Table { hosts, gpus_per_host, memory_gbps, link, network } = table;
    let link = Link { gbps: link.gbps, start_us: link.start_us };
    let per = match network.per {
        Per::Gpu => Port::Gpu,
        Per::Host => Port::Host,
    };
    let network = Link { gbps: network.gbps, start_us: network.start_us };
    let cluster = Cluster::new([hosts, gpus_per_host], link, network, per, memory_gbps);
    Ok(cluster.map_err(|error| error.while_doing(format!("reading {}", path.display())))?)
}

/// The parser's refusal as a sentence, with its line and with the key if it knows them.
fn refusal(path: &Path, text: &str, mut error: toml::de::Error) -> String {
    // Without the text, the keys follow the message.
    error.set_input(None);
    let shown = error.to_string();
    let key = shown.strip_prefix(error.message()).map_or("", str::trim);
    let key = key.strip_prefix("in ").map_or(String::new(), |key| format!(", {key}"));
    let line = error.span().map_or(String::new(), |span| {
        let before = text.get(..span.start).unwrap_or(text);
        format!(" line {}", 1 + before.matches('\n').count())
    });
    let words = error.message().replace("expected usize", "expected a whole number from 0");
    printable_line(&format!("{}{line}{key}: {}", path.display(), words.replace("expected f64", "expected a number")))
}
