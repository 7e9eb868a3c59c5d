//! A launch on the software GPU: without a driver between, so that its report is at hand.

use std::time::Instant;

use anyhow::Result;
use warpstride::error::Error;
use warpstride::interp::{self, Memory};

use super::super::{terminal, zeroed};
use super::buffer::Buffer;
use super::report::Outcome;
use super::{Launch, parameters};

impl Launch<'_> {
    /// Runs it in memory of at most `limit` bytes.
    pub(crate) fn on_soft(&self, buffers: Vec<Option<Buffer>>, limit: u64) -> Result<Outcome> {
        let outcome = self.silently_on_soft(buffers, limit)?;
        // The kernel's own output is a note.
        terminal::say(outcome.printed());
        Ok(outcome)
    }

    /// The same, without what the kernel prints.
    pub(crate) fn silently_on_soft(&self, buffers: Vec<Option<Buffer>>, limit: u64) -> Result<Outcome> {
        // A launch that cannot run is refused before buffers are made.
        let (shape, args) = (self.shape(), self.args);
        let anywhere = parameters(self.kernel, &args.arguments, |_| 0)?;
        interp::check_launch(self.kernel, &shape, &anywhere).map_err(|stop| Error::from(*stop))?;
        let memory = Memory::new(limit);
        let places = buffers.into_iter().map(|buffer| place(&memory, buffer)).collect::<Result<Vec<_>>>()?;
        let params = parameters(self.kernel, &args.arguments, |position| places[position].0)?;
        self.variables.iter().try_for_each(|variable| variable.fill_on_soft(&memory))?;
        let begin = Instant::now();
        let (checks, work_limit) = (args.checks.unwrap_or_default(), args.limit.unwrap_or(interp::DEFAULT_WORK));
        let (footprint, contract) = (self.footprint, args.contract);
        let config = interp::Config { checks, work_limit, footprint, contract, ..interp::Config::default() };
        let (report, stopped) = match interp::run(self.kernel, &shape, &params, &memory, &config) {
            Ok(report) => (Some(report), None),
            // The earlier findings of the checkers are shown too.
            Err(stop) => (None, Some(*stop)),
        };
        let seconds = begin.elapsed().as_secs_f64();
        let dump = |&argument: &usize| {
            let (address, bytes) = places[argument];
            let mut contents = zeroed(bytes)?;
            if bytes > 0 {
                memory.read(address, &mut contents)?;
            }
            anyhow::Ok(contents)
        };
        let dumped = self.dumps.iter().map(dump).collect::<Result<_>>()?;
        Ok(Outcome { seconds, report, stopped, dumped })
    }
}

/// Address and bytes of an argument's buffer; the address of none is 0.
fn place(memory: &Memory, buffer: Option<Buffer>) -> Result<(u64, usize)> {
    let Some(buffer) = buffer.filter(|buffer| buffer.bytes > 0) else { return Ok((0, 0)) };
    let bytes = buffer.bytes;
    // First of all, since it knows what there is room for.
    let address = memory.alloc(bytes as u64)?;
    if let Some(contents) = buffer.contents()? {
        memory.write(address, &contents)?;
    }
    Ok((address, bytes))
}
