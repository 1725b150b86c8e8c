//! Says a plan in the words of bubblewrap.

use std::ffi::OsString;
use std::path::Path;

use super::plan::{Mount, Plan};
use super::{HELPER, SCRATCH_BYTES};

/// Returns the arguments that make what `plan` says around the helper, which then confines itself further.
pub(super) fn arguments(plan: &Plan, helper: &Path) -> Vec<OsString> {
    let mut words = Words(Vec::new());
    // Its first process is the helper, and all ends with it.
    words.add(["--unshare-all", "--die-with-parent", "--as-pid-1"]);
    words.add(["--cap-drop", "ALL"]);
    words.add(["--dev", "/dev", "--proc", "/proc"]);
    words.scratch(Path::new("/dev/shm"));
    for mount in plan.laid() {
        match mount {
            Mount::Read(place) => words.bind("--ro-bind", place, place),
            Mount::Write(place) => words.bind("--bind", place, place),
            Mount::Show { from, at, writable } => {
                words.bind(if *writable { "--bind" } else { "--ro-bind" }, from, at);
            }
            Mount::Scratch(place) | Mount::Closed(place) => words.scratch(place),
            Mount::Hide(place) => words.bind("--ro-bind", Path::new("/dev/null"), place),
            Mount::Link { at, to } => words.bind("--symlink", to, at),
        }
    }
    words.bind("--ro-bind", helper, Path::new(HELPER));
    // Only now: what is laid over it needs a place there.
    for place in plan.closed() {
        words.0.extend(["--remount-ro".into(), place.into()]);
    }
    words.add(["--remount-ro", "/", "--"]);
    words.0
}

struct Words(Vec<OsString>);

impl Words {
    fn add<const COUNT: usize>(&mut self, words: [&str; COUNT]) {
        self.0.extend(words.into_iter().map(OsString::from));
    }

    fn bind(&mut self, word: &str, from: &Path, to: &Path) {
        self.0.extend([word.into(), from.into(), to.into()]);
    }

    fn scratch(&mut self, place: &Path) {
        let size = SCRATCH_BYTES.to_string();
        self.add(["--size", &size, "--tmpfs"]);
        self.0.push(place.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Limits;

    #[test]
    fn a_plan_becomes_a_command_line() {
        let plan = Plan {
            directory: "/slot".into(),
            mounts: vec![
                Mount::Link {
                    at: "/bin".into(),
                    to: "usr/bin".into(),
                },
                Mount::Read("/usr".into()),
                Mount::Hide("/etc/shadow".into()),
                Mount::Scratch("/tmp".into()),
                Mount::Closed("/state".into()),
                Mount::Write("/slot".into()),
            ],
            door: None,
            groups: Vec::new(),
            limits: Limits {
                memory_bytes: 1,
                processes: 1,
                disk_bytes: 1,
            },
        };
        let line = |plan: &Plan| arguments(plan, Path::new("/x")).join(" ".as_ref());
        let size = SCRATCH_BYTES;
        let expected = format!(
            "--unshare-all --die-with-parent --as-pid-1 --cap-drop ALL --dev /dev --proc /proc --size {size} --tmpfs \
             /dev/shm --symlink usr/bin /bin --ro-bind /usr /usr --ro-bind /dev/null /etc/shadow --size {size} --tmpfs \
             /tmp --size {size} --tmpfs /state --bind /slot /slot --ro-bind /x {HELPER} --remount-ro /state --remount-ro / --"
        );
        assert_eq!(line(&plan), OsString::from(expected));
    }
}
