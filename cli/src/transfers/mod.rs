//! `warpstride transfers`: copies between host and device by every kind of host memory.

mod measure;

use crate::export::{json, text};
use crate::run::Run;
use crate::run::transfers::Transfers;
use anyhow::Result;
use warpstride::device::Backend;
use warpstride::roofline::measure::has_times;

use super::output::Output;
use super::{args, ensure_room, open, require};

/// Bytes of the largest copies, on a GPU and on the software GPU.
const LARGEST: usize = 1 << 30;
const LARGEST_SOFT: usize = 1 << 20;

/// Most copies of the bytes that the host and the device hold at once.
const ON_HOST: usize = 5;
const ON_DEVICE: usize = 2;

pub(super) fn run(args: &args::Transfers, backend: Backend, output: &Output) -> Result<()> {
    let device = open(backend, output)?;
    let largest = args.bytes.unwrap_or(if has_times(&device) { LARGEST } else { LARGEST_SOFT });
    ensure_room(largest, ON_HOST, &[(&device, ON_DEVICE)])?;
    let date = jiff::Timestamp::now().to_string();
    let progress = output.progress(1);
    let transfers = Transfers::measure(&device, largest, |what| progress.doing(what.to_owned()))?;
    drop(progress);
    let run = Run { transfers: Some(transfers), ..Run::new(&device, date, None, Vec::new()) };
    let wrong = run.wrong();
    output.result(&text::run(&run), json::document(&run)?.into())?;
    require!(wrong.is_empty(), Driver, "{} lost bytes; please report this as a bug", wrong.join(", "));
    Ok(())
}
