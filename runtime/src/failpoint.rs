//! Makes a process fail at a named place, for tests; compiled only with the feature `failpoints`.
//!
//! Code marks a place with [`failpoint!`](crate::failpoint), which is nothing at all without the feature. A test arms one
//! place of a process before the work begins.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What happens at an armed place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The process ends at once, as by a crash.
    Abort,
    /// The task panics, now and every later time.
    Panic,
}

/// One armed place.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    place: String,
    /// Which passing fails, from 1.
    nth: u64,
    action: Action,
}

static PLAN: OnceLock<Plan> = OnceLock::new();
static PASSED: AtomicU64 = AtomicU64::new(0);

/// Says that a plan cannot be read or that one is armed already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailpointError {
    /// The text is no plan.
    #[error("`{0}` is no failpoint; write `place:nth` or `place:nth:panic`, with nth from 1")]
    Unreadable(String),
    /// A process fails at one place only.
    #[error("a failpoint is armed already")]
    Armed,
}

/// Arms the place that `plan` names: `place:nth` aborts at the nth passing, `place:nth:panic` panics from then on.
pub fn arm(plan: &str) -> Result<(), FailpointError> {
    let plan = parse(plan).ok_or_else(|| FailpointError::Unreadable(plan.to_owned()))?;
    PLAN.set(plan).map_err(|_| FailpointError::Armed)
}

fn parse(text: &str) -> Option<Plan> {
    let (rest, action) = match text.strip_suffix(":panic") {
        Some(rest) => (rest, Action::Panic),
        None => (text, Action::Abort),
    };
    let (place, nth) = rest.rsplit_once(':')?;
    let nth = nth.parse().ok().filter(|nth| *nth > 0)?;
    (!place.is_empty()).then(|| Plan {
        place: place.to_owned(),
        nth,
        action,
    })
}

/// Passes a place; does not return if it is armed and its time has come.
///
/// # Panics
///
/// Where the plan says so: that is what it is for.
pub fn pass(place: &str) {
    let Some(plan) = PLAN.get().filter(|plan| plan.place == place) else {
        return;
    };
    let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    match plan.action {
        Action::Abort if passed == plan.nth => std::process::abort(),
        Action::Panic if passed >= plan.nth => panic!("failpoint `{place}`"),
        Action::Abort | Action::Panic => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_a_place_a_passing_and_what_happens_there() {
        let plan = |place: &str, nth, action| {
            Some(Plan {
                place: place.to_owned(),
                nth,
                action,
            })
        };
        let cases = [
            ("a.b:2", plan("a.b", 2, Action::Abort)),
            ("a/b:c:1:panic", plan("a/b:c", 1, Action::Panic)),
            ("a.b", None),
            ("a.b:0", None),
            (":1", None),
            ("a.b:x", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
