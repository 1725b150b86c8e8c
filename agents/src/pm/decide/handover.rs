//! Decides which build gives way when builds wait for each other's files and nobody holds a lock that would free them.

use chrono::{DateTime, Utc};
use ropewalk_schemas::{BuildId, Priority};

/// A build in such a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The build.
    pub build: BuildId,
    /// How urgent it is.
    pub priority: Priority,
    /// When it was approved.
    pub created_at: DateTime<Utc>,
}

/// Names the build that hands its file over: the least urgent, then the youngest; nobody waits for none.
pub fn hands_over(members: &[Member]) -> Option<BuildId> {
    members
        .iter()
        .max_by_key(|member| (member.priority, member.created_at, member.build.0))
        .map(|member| member.build)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_least_urgent_build_hands_over_then_the_youngest() {
        let member = |build, priority, age| Member {
            build: BuildId(Uuid::from_u128(build)),
            priority: Priority::new(priority).unwrap(),
            created_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(age),
        };
        for (members, expected) in [
            ([member(1, 5, 0), member(2, 6, 0)], 2),
            ([member(1, 6, 0), member(2, 5, 9)], 1),
            ([member(1, 5, 9), member(2, 5, 0)], 1),
            ([member(1, 5, 0), member(2, 5, 0)], 2),
        ] {
            let named = hands_over(&members);
            assert_eq!(
                named,
                Some(BuildId(Uuid::from_u128(expected))),
                "{members:?}"
            );
        }
        assert_eq!(hands_over(&[]), None);
    }
}
