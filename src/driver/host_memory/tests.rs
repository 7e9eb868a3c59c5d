use std::fs;

use proptest::prelude::*;

use super::*;

/// Makes a root with these files.
fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let file = root.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    root
}

fn available_in(files: &[(&str, &str)]) -> Option<u64> {
    available(root(files).path())
}

const MEMINFO: (&str, &str) =
    ("proc/meminfo", "MemTotal:  24682672 kB\nMemFree:  1 kB\nMemAvailable:   4096 kB\nBuffers: 7 kB\n");

#[test]
fn without_groups_the_systems_account_counts() {
    assert_eq!(available_in(&[MEMINFO]), Some(4 << 20));
    assert_eq!(available_in(&[]), None);
    for strange in ["", "MemAvailable: many kB", "MemAvailable: 5 MB", "MemAvailable: 18446744073709551615 kB"] {
        assert_eq!(available_in(&[("proc/meminfo", strange)]), None, "{strange}");
    }
}

#[test]
fn the_least_limit_of_version_2_from_the_own_group_to_the_root_counts() {
    let own = ("proc/self/cgroup", "0::/slice/unit/own\n");
    let group = |name: &'static str, limit: &'static str, used: &'static str| {
        let file = |kind: &str| -> &'static str { format!("sys/fs/cgroup/{name}/memory.{kind}").leak() };
        [(file("max"), limit), (file("current"), used), (file("stat"), "anon 1\ninactive_file 500\n")]
    };
    let at = |limits: [&'static str; 3]| {
        let groups = [
            group("slice/unit/own", limits[0], "700"),
            group("slice/unit", limits[1], "1000"),
            group("slice", limits[2], "2000"),
        ];
        available_in(&[&[MEMINFO, own], groups.concat().as_slice()].concat())
    };
    assert_eq!(at(["1000\n", "max\n", "max\n"]), Some(800), "with the cache");
    assert_eq!(at(["max\n", "max\n", "max\n"]), Some(4 << 20));
    assert_eq!(at(["1000\n", "600\n", "max\n"]), Some(100));
    assert_eq!(at(["1000\n", "max\n", "900\n"]), Some(0), "the outermost is used up");
}

#[test]
fn groups_of_version_1_have_their_own_names_and_count_those_within() {
    let own = ("proc/self/cgroup", "5:cpu,cpuacct:/else\n4:hugetlb,memory:/docker/ab\n0::/system\n");
    let files = [
        MEMINFO,
        own,
        ("sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "2000\n"),
        ("sys/fs/cgroup/memory/docker/ab/memory.usage_in_bytes", "1500\n"),
        ("sys/fs/cgroup/memory/docker/ab/memory.stat", "inactive_file 10\ntotal_inactive_file 300\n"),
    ];
    assert_eq!(available_in(&files), Some(800));
    // In a container the path is the host's, and its own group is mounted as the root.
    let files = [
        MEMINFO,
        own,
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "500\n"),
    ];
    assert_eq!(available_in(&files), Some(2500));
    let none = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    let used = ("sys/fs/cgroup/memory/memory.usage_in_bytes", "500\n");
    assert_eq!(available_in(&[MEMINFO, own, none, used]), Some(4 << 20), "no limit");
}

#[test]
fn paths_lead_nowhere_else() {
    for path in ["0::/../../etc", "0::/a/../../b", "0::relative", "0::", "0", "", ":::::"] {
        assert_eq!(group_path(path, true), None, "{path}");
    }
    assert_eq!(group_path("0::/", true), Some(PathBuf::new()));
    assert_eq!(group_path("3:memory:/a:b\n", false), Some(PathBuf::from("a:b")), "a name may have a colon");
    let deep = format!("0::{}", "/a".repeat(30_000));
    assert_eq!(available_in(&[MEMINFO, ("proc/self/cgroup", &deep)]), Some(4 << 20));
    // Few of its ancestors are looked at, by their whole paths.
    let looked_at = folders(Path::new("/"), &V2, &group_path(&deep, true).unwrap());
    assert_eq!(looked_at.len(), (MAX_GROUPS + 1) * V2.mounts.len());
}

proptest! {
    #[test]
    fn no_text_of_the_kernel_is_a_fault(
        meminfo in "(MemAvailable|[A-Za-z]{1,9})?:? *[0-9]{0,30} ?(kB|MB)?\\PC{0,20}",
        groups in "([0-9]{0,3}:(memory|cpu|,|){0,3}:[/.a-z]{0,12}\n?){0,4}\\PC{0,20}",
        limit in "([0-9]{0,25}|max|-1)\\PC{0,3}",
        account in "((total_)?inactive_file [0-9]{0,25}\n?){0,3}\\PC{0,20}",
    ) {
        let files = [
            ("proc/meminfo", &*meminfo),
            ("proc/self/cgroup", &*groups),
            ("sys/fs/cgroup/memory.max", &*limit),
            ("sys/fs/cgroup/memory.current", "7"),
            ("sys/fs/cgroup/memory.stat", &*account),
        ];
        let _ = available_in(&files);
    }
}
