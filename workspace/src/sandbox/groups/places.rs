//! Finds the groups that this process is in, in the file system.

use std::fs;
use std::path::{Path, PathBuf};

use super::Hold;

/// What has to be bounded.
const NEEDED: [&str; 2] = ["memory", "pids"];

/// Returns the directories of the groups that this process is in, one for all controllers or one for each.
pub(super) fn of_this_process(hold: Hold) -> Result<Vec<PathBuf>, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("`{path}`: {error}"));
    let (mounts, own) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
    let places = find(hold, &mounts, &own)?;
    if hold == Hold::CgroupV2 {
        let file = places.first().map(|place| place.join("cgroup.controllers"));
        let there = file.and_then(|file| fs::read_to_string(file).ok());
        let there = there.unwrap_or_default();
        let there: Vec<&str> = there.split_whitespace().collect();
        if !NEEDED.iter().all(|needed| there.contains(needed)) {
            return Err("cgroup v2 has no memory and pids here".to_owned());
        }
    }
    Ok(places)
}

/// Reads them out of what the kernel says of mounts and of this process.
fn find(hold: Hold, mounts: &str, own: &str) -> Result<Vec<PathBuf>, String> {
    if hold == Hold::CgroupV2 {
        let place = directory(mounts, own, None).ok_or("there is no cgroup v2")?;
        return Ok(vec![place]);
    }
    let mut places = Vec::new();
    for controller in NEEDED {
        let place = directory(mounts, own, Some(controller));
        places.push(place.ok_or(format!("there is no cgroup v1 of `{controller}`"))?);
    }
    places.dedup();
    Ok(places)
}

/// Returns the directory of our group of `controller`; none means cgroup v2.
fn directory(mounts: &str, own: &str, controller: Option<&str>) -> Option<PathBuf> {
    let is_its = |list: &str| match controller {
        Some(name) => list.split(',').any(|word| word == name),
        None => list.is_empty(),
    };
    let group = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let is_its = is_its(fields.next()?);
        fields.next().filter(|_| is_its)
    })?;
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let (mut place, mut kind) = (place.split(' ').skip(3), kind.split(' '));
        let (root, at) = (place.next()?, place.next()?);
        let is_its = match (kind.next()?, controller) {
            ("cgroup2", None) => true,
            ("cgroup", Some(_)) => is_its(kind.nth(1)?),
            _ => false,
        };
        let below = Path::new(group).strip_prefix(root).ok()?;
        is_its.then(|| Path::new(at).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        24 1 0:21 / /proc rw - proc proc rw\n\
        31 24 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        32 24 0:28 /box /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n\
        33 24 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn groups_are_found_below_their_mounts() {
        let own = "8:pids:/box/inner\n4:memory:/a/b\n0::/user.slice/x\n";
        let found = find(Hold::CgroupV1, MOUNTS, own);
        let expected = ["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/pids/inner"];
        assert_eq!(found, Ok(expected.map(PathBuf::from).to_vec()));
        let found = find(Hold::CgroupV2, MOUNTS, own);
        let expected = PathBuf::from("/sys/fs/cgroup/unified/user.slice/x");
        assert_eq!(found, Ok(vec![expected]));
    }

    #[test]
    fn controllers_of_one_mount_share_a_group() {
        let mounts = "31 24 0:27 / /cg rw - cgroup cgroup rw,pids,memory\n";
        let found = find(Hold::CgroupV1, mounts, "4:pids,memory:/a\n");
        assert_eq!(found, Ok(vec![PathBuf::from("/cg/a")]));
    }

    #[test]
    fn what_is_not_mounted_or_lies_elsewhere_is_not_found() {
        for own in ["4:memory:/a\n", "8:pids:/other\n4:memory:/a\n", ""] {
            assert!(find(Hold::CgroupV1, MOUNTS, own).is_err(), "{own}");
        }
        assert!(find(Hold::CgroupV2, "", "0::/\n").is_err());
    }
}
