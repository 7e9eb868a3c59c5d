//! Checks that the memory of the host suffices, before it is taken.

use anyhow::Result;
use warpstride::driver::available_memory;

use super::require;

/// Fails with a sentence where the host has no room for `needed` bytes. Where the system does not
/// say, there is.
pub(super) fn ensure_available(needed: u128) -> Result<()> {
    match available_memory() {
        Some(available) => ensure_fits(needed, available),
        None => Ok(()),
    }
}

fn ensure_fits(needed: u128, available: u64) -> Result<()> {
    require!(
        needed <= u128::from(available),
        OutOfMemory,
        "this takes {} MB of host memory and {} MB are available; use smaller arrays",
        needed.div_ceil(1_000_000),
        available / 1_000_000
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        assert!(ensure_fits(5, 5).is_ok());
        let refused = ensure_fits(5_000_001, 3_000_000).unwrap_err().to_string();
        assert!(refused.contains("6 MB") && refused.contains("3 MB"), "{refused}");
    }
}
