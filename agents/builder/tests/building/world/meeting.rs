//! A gate that the test meets: its runs say that they have begun, and wait while they are held.

use crate::world::patience::exists;

/// The directory through which runs of the gate and the test tell each other how far they are.
pub(crate) struct MeetingGate {
    signals: tempfile::TempDir,
}

impl MeetingGate {
    /// Makes a gate that holds nobody yet.
    pub(crate) fn new() -> Self {
        Self {
            signals: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns the project file of the gate; a run does `before`, meets the test, and does `after`.
    pub(crate) fn project_file(&self, before: &str, after: &str) -> String {
        let signals = self.signals.path().display();
        let number = format!(
            "number=1; until mkdir {signals}/run-$number 2>/dev/null; do number=$((number + 1)); done"
        );
        let wait = format!(
            "while [ -e {signals}/hold ] && [ ! -e {signals}/go-$number ]; do sleep 0.02; done"
        );
        format!(
            "[[gate.commands]]\nname = \"meet\"\ncommand = '{before} && {{ {number}; {wait}; }} && {after}'\n"
        )
    }

    /// Holds the runs that begin from now on, and counts them from one.
    pub(crate) fn hold(&self) {
        for entry in std::fs::read_dir(self.signals.path()).unwrap() {
            std::fs::remove_dir(entry.unwrap().path()).unwrap();
        }
        std::fs::write(self.signals.path().join("hold"), "").unwrap();
    }

    /// Waits until run `number` has begun.
    pub(crate) async fn until_begun(&self, number: u32) {
        let run = self.signals.path().join(format!("run-{number}"));
        exists(&run).await;
    }

    /// Lets run `number` go on.
    pub(crate) fn let_go(&self, number: u32) {
        std::fs::write(self.signals.path().join(format!("go-{number}")), "").unwrap();
    }

    /// Lets every run go on.
    pub(crate) fn release(&self) {
        std::fs::remove_file(self.signals.path().join("hold")).unwrap();
    }
}
