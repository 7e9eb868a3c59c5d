//! Counters as the table that Nsight Compute prints with `--csv --page details`, so that scripts
//! for that read ours.

use anyhow::Result;
use warpstride::counters::Counters;
use warpstride::counters::table::counters;
use warpstride::error::printable_line;

/// The columns of Nsight Compute.
const HEADER: [&str; 15] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Section Name",
    "Metric Name",
    "Metric Unit",
    "Metric Value",
];
/// The section that Nsight Compute puts metrics into which `--metrics` names.
const SECTION: &str = "Command line profiler metrics";

/// A kernel that was counted.
pub(crate) struct Counted {
    pub(crate) process: u32,
    pub(crate) program: String,
    /// As C++ writes it.
    pub(crate) kernel: String,
    pub(crate) block: [u32; 3],
    pub(crate) grid: [u32; 3],
    /// The compute capability, such as `9.0`.
    pub(crate) capability: String,
    pub(crate) counters: Counters,
}

/// Returns the table, with a row for each metric of each kernel.
///
/// # Errors
///
/// If the table cannot be made.
pub(crate) fn csv(rows: &[Counted]) -> Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for (id, row) in rows.iter().enumerate() {
        for counter in counters() {
            writer.write_record([
                &*id.to_string(),
                &row.process.to_string(),
                &printable_line(&row.program),
                "127.0.0.1",
                &printable_line(&row.kernel),
                "1",
                "7",
                &size(row.block),
                &size(row.grid),
                "0",
                &row.capability,
                SECTION,
                &counter.metric(),
                unit(counter.figure().name),
                &counter.of(&row.counters).to_string(),
            ])?;
        }
    }
    Ok(writer.into_inner()?)
}

/// Formats blocks or threads as Nsight Compute does.
fn size([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

/// Nsight Compute's unit of a figure; it counts conflicts and wavefronts without one.
fn unit(figure: &str) -> &'static str {
    match figure {
        "instructions" => "inst",
        "requests" => "request",
        "sectors" => "sector",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_a_row_for_each_metric() {
        let mut counters = Counters::default();
        counters.global_load.sectors = 7;
        let (program, kernel, capability) = ("p".into(), "k<int, 2>".into(), "9.0".into());
        let row = Counted { process: 3, program, kernel, block: [32, 1, 1], grid: [2, 1, 1], capability, counters };
        let text = String::from_utf8(csv(&[row]).expect("a table")).expect("text");
        assert!(text.starts_with("\"ID\",\"Process ID\",\"Process Name\""), "{text}");
        let metric = "\"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum\",\"sector\",\"7\"\n";
        let row =
            "\"0\",\"3\",\"p\",\"127.0.0.1\",\"k<int, 2>\",\"1\",\"7\",\"(32, 1, 1)\",\"(2, 1, 1)\",\"0\",\"9.0\",";
        assert!(text.contains(&format!("{row}\"{SECTION}\",{metric}")), "{text}");
    }
}
