//! Decides which tasks may begin while the program may have died of one of them (design §3, invariant 14).

/// How those stand that the program may have died of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspectState {
    /// Whether one of them runs.
    pub on_trial: bool,
    /// Whether one of them could begin.
    pub ready: bool,
    /// How many attempts run in this process.
    pub running: usize,
}

/// Who may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Whoever is ready.
    Anyone,
    /// Nobody: one runs alone, or those that run have to end first.
    Nobody,
    /// One that the program may have died of, and nobody beside it.
    Suspects,
}

/// Decides who may begin. A suspect that cannot begin holds up nobody.
pub fn admission(standing: &SuspectState) -> Admission {
    match standing {
        SuspectState { on_trial: true, .. } => Admission::Nobody,
        SuspectState { ready: false, .. } => Admission::Anyone,
        SuspectState { running: 0, .. } => Admission::Suspects,
        SuspectState { .. } => Admission::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspect_begins_when_nothing_runs_and_nothing_begins_beside_it() {
        let cases = [
            ((false, false, 0), Admission::Anyone),
            ((false, false, 3), Admission::Anyone),
            ((false, true, 0), Admission::Suspects),
            ((false, true, 1), Admission::Nobody),
            ((true, false, 1), Admission::Nobody),
            ((true, true, 1), Admission::Nobody),
        ];
        for ((on_trial, ready, running), expected) in cases {
            let standing = SuspectState {
                on_trial,
                ready,
                running,
            };
            assert_eq!(admission(&standing), expected, "{standing:?}");
        }
    }
}
