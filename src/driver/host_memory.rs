//! The size of the host's pages, and how much memory the host can give, before it is taken: Linux
//! promises more than there is, and then kills.
//!
//! `/proc/meminfo` gives the system's memory. A process may have less: each of its control groups,
//! of version 2 or 1, has a limit, and the least of all counts, from its own group up to the root.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Bytes of the smallest pages of a host, which it locks as a whole.
pub(crate) const PAGE: usize = 4096;

/// Bytes that are read of one of the kernel's files, which have some thousands.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Most nested groups that are searched.
const MAX_GROUPS: usize = 64;

/// A version of control groups: its possible mount points, and the names of its limit, usage and
/// statistics files.
struct Version {
    mounts: &'static [&'static str],
    files: [&'static str; 3],
}

const V2: Version = Version {
    mounts: &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
    files: ["memory.max", "memory.current", "memory.stat"],
};
const V1: Version = Version {
    mounts: &["sys/fs/cgroup/memory"],
    files: ["memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"],
};

/// Returns the bytes of host memory that this process can have without swapping and without being
/// killed; `None` if the system does not say.
pub fn available_memory() -> Option<u64> {
    available(Path::new("/"))
}

/// Returns the same from the files below `root`.
fn available(root: &Path) -> Option<u64> {
    let system = read(&root.join("proc/meminfo")).and_then(|text| meminfo_available(&text));
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    [(V2, group_path(&groups, true)), (V1, group_path(&groups, false))]
        .iter()
        // Within a container the path may be the outside one, and its own group is the root.
        .flat_map(|(version, path)| folders(root, version, path.as_deref().unwrap_or(Path::new(""))))
        .filter_map(|(folder, files)| {
            let [limit, used, account] = files.map(|file| read(&folder.join(file)));
            group_available(&limit?, &used?, &account.unwrap_or_default())
        })
        .chain(system)
        .min()
}

/// Returns the folders of a group and of its ancestors, up to the root, with the names of their
/// files.
fn folders(root: &Path, version: &Version, path: &Path) -> Vec<(PathBuf, [&'static str; 3])> {
    let groups = path.ancestors().take(MAX_GROUPS).chain([Path::new("")]);
    let mounted = |group: &Path| version.mounts.iter().map(|mount| root.join(mount).join(group)).collect::<Vec<_>>();
    groups.flat_map(mounted).map(|folder| (folder, version.files)).collect()
}

/// Returns the path of the group that limits memory, from the lines `number:controllers:path` of
/// `/proc/self/cgroup`. Version 2 has one group for all controllers, which it does not name.
fn group_path(groups: &str, second: bool) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let wanted = if second { controllers.is_empty() } else { controllers.split(',').any(|name| name == "memory") };
        wanted.then_some(path)
    })?;
    let path = Path::new(path.strip_prefix('/')?);
    path.components().all(|part| matches!(part, Component::Normal(_))).then(|| path.to_owned())
}

/// Returns the start of a kernel file; `None` if it does not exist or is not text.
fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns the bytes in the line `MemAvailable: 12345 kB`.
fn meminfo_available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the bytes up to the limit; `None` without a limit. Cached files count as used, and the
/// system drops them on demand.
fn group_available(limit: &str, used: &str, account: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    let used: u64 = used.trim().parse().ok()?;
    let cached =
        |line: &str| line.strip_prefix("total_inactive_file ").or(line.strip_prefix("inactive_file "))?.parse().ok();
    // Version 1 lists the total, which includes nested groups, last.
    let cached: u64 = account.lines().rev().find_map(cached).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
mod tests;
