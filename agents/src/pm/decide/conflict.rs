//! Decides who may have a file that two builds want.

use ropewalk_schemas::payload::Verdict;
use ropewalk_schemas::{BuildId, Priority};

/// A build that wants or owns a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimant {
    /// The build.
    pub build: BuildId,
    /// How urgent it is.
    pub priority: Priority,
}

/// What PM decided, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Grant, pre-empt or deny.
    pub verdict: Verdict,
    /// Why, for people.
    pub reason: String,
}

/// Decides between the build that asks and the one that owns the file, if one still does.
pub fn conflict(file: &str, asks: Claimant, owner: Option<Claimant>) -> Ruling {
    match owner {
        None => Ruling {
            verdict: Verdict::Grant,
            reason: format!("nobody owns `{file}`, so it goes to the first build that asks"),
        },
        Some(owner) if owner.build == asks.build => Ruling {
            verdict: Verdict::Grant,
            reason: format!("build `{}` owns `{file}` already", asks.build),
        },
        // 1 is the most urgent.
        Some(owner) if asks.priority < owner.priority => Ruling {
            verdict: Verdict::Preempt,
            reason: format!(
                "build `{}` (priority {}) needs `{file}` for more urgent work than build `{}` (priority {})",
                asks.build,
                asks.priority.get(),
                owner.build,
                owner.priority.get()
            ),
        },
        Some(owner) => Ruling {
            verdict: Verdict::Deny,
            reason: format!(
                "build `{}` owns `{file}`; wait until it is merged, or ask it for a change",
                owner.build
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_owner_keeps_a_file_unless_more_urgent_work_needs_it() {
        let claimant = |build, priority| Claimant {
            build: BuildId(Uuid::from_u128(build)),
            priority: Priority::new(priority).unwrap(),
        };
        let rows = [
            (None, Verdict::Grant),
            (Some(claimant(1, 5)), Verdict::Grant),
            (Some(claimant(2, 5)), Verdict::Deny),
            (Some(claimant(2, 4)), Verdict::Deny),
            (Some(claimant(2, 6)), Verdict::Preempt),
        ];
        for (owner, verdict) in rows {
            let ruling = conflict("a.ts", claimant(1, 5), owner);
            assert_eq!(ruling.verdict, verdict, "{owner:?}");
            assert!(ruling.reason.contains("a.ts"));
        }
        let denied = conflict("a.ts", claimant(1, 5), Some(claimant(2, 5)));
        assert!(denied.reason.contains(&claimant(2, 5).build.to_string()));
    }
}
