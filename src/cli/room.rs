//! Whether the memory of the host suffices, asked before it is taken: Linux promises more than there is, and then kills.

use std::fs;

use anyhow::Result;

use super::require;

/// What the kernel says of its memory.
const MEMINFO: &str = "/proc/meminfo";
/// Limit, use and account of a container's memory, by version 2 of control groups and by version 1. Inside a container its
/// own group is the root.
const GROUPS: [[&str; 3]; 2] = [
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"],
    [
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ],
];

/// Fails with a sentence where the host has no room for `needed` bytes. Where the system does not say, there is.
pub(super) fn ensure_room(needed: u128) -> Result<()> {
    let system = fs::read_to_string(MEMINFO).ok().and_then(|text| meminfo_available(&text));
    let groups = GROUPS.iter().filter_map(|files| {
        let [limit, used, account] = files.map(|file| fs::read_to_string(file).ok());
        group_available(&limit?, &used?, &account?)
    });
    match groups.chain(system).min() {
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

/// Bytes that can be had without swapping.
fn meminfo_available(text: &str) -> Option<u64> {
    let kibibytes: u64 =
        text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?.strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Bytes up to the limit; none where there is no limit. Cached files count as used, and make room when asked.
fn group_available(limit: &str, used: &str, account: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    let used: u64 = used.trim().parse().ok()?;
    let cached = account.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_account_is_read() {
        let text = "MemTotal:       24682672 kB\nMemFree:        1 kB\nMemAvailable:   23955472 kB\nBuffers: 7 kB\n";
        assert_eq!(meminfo_available(text), Some(23_955_472 * 1024));
        assert_eq!(meminfo_available("MemTotal: 7 kB\n"), None);
        assert_eq!(meminfo_available("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn a_groups_cache_is_room() {
        assert_eq!(group_available("1000\n", "700\n", "anon 100\ninactive_file 600\n"), Some(900));
        assert_eq!(group_available("1000\n", "1200\n", ""), Some(0));
        assert_eq!(group_available("max\n", "700\n", "inactive_file 600\n"), None);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        assert!(ensure_fits(5, 5).is_ok());
        let refused = ensure_fits(5_000_001, 3_000_000).unwrap_err().to_string();
        assert!(refused.contains("6 MB") && refused.contains("3 MB"), "{refused}");
    }
}
