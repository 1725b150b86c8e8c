//! Decides what is an outage, when it is looked at again, and what a probe makes of it.

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_llm::ModelError;
use ropewalk_schemas::outage::{Outage, OutageClass};

/// The first pause before a provider is looked at again; each further one doubles.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(1);
/// The longest one.
const LONGEST_PAUSE: TimeDelta = TimeDelta::seconds(15);
/// A call that has met so many outages is at fault itself: others were answered in between.
const MOST_MET: usize = 3;
/// So many calls are remembered.
const REMEMBERED: usize = 64;

/// What a probe makes of an outage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    /// It is over.
    Back,
    /// It stands.
    Away {
        /// As it is now.
        outage: Outage,
        /// Whether people are told of it anew.
        tell: bool,
    },
}

/// Says who can end an outage that a call met; none where the call met none.
pub(super) fn class_of(error: &ModelError) -> Option<OutageClass> {
    match error {
        ModelError::Unauthorized { variable, .. } => Some(OutageClass::Key {
            variable: variable.clone(),
        }),
        other => other.is_outage().then_some(OutageClass::Unavailable),
    }
}

/// Returns the outage after a call met it; none where the call itself is at fault.
pub(super) fn met(
    known: Option<&Outage>,
    provider: &str,
    key: &str,
    class: &OutageClass,
    error: &ModelError,
    now: DateTime<Utc>,
) -> Option<Outage> {
    let mut met_by = known.map_or_else(Vec::new, |outage| outage.met_by.clone());
    if met_by.iter().filter(|met| *met == key).count() >= MOST_MET {
        return None;
    }
    met_by.push(key.to_owned());
    let surplus = met_by.len().saturating_sub(REMEMBERED);
    met_by.drain(..surplus);
    if let Some(stands) = known.filter(|outage| outage.stands()) {
        return Some(Outage {
            met_by,
            ..stands.clone()
        });
    }
    Some(Outage {
        provider: provider.to_owned(),
        class: class.clone(),
        roles: Vec::new(),
        since: now,
        last_error: error.to_string(),
        probes: 0,
        probe_at: probe_at(class, 0, now),
        ended_at: None,
        met_by,
    })
}

/// Returns the outage once it is over.
pub(super) fn ended(outage: &Outage, now: DateTime<Utc>) -> Outage {
    Outage {
        probe_at: None,
        ended_at: Some(now),
        ..outage.clone()
    }
}

/// Says what a probe makes of an outage. Whoever answers, be it with a refusal, is there.
pub(super) fn after_probe(outage: &Outage, met: Option<&ModelError>, now: DateTime<Utc>) -> After {
    let Some((class, error)) = met.and_then(|error| Some((class_of(error)?, error))) else {
        return After::Back;
    };
    // A person was told that it is mended, and it is not; or it is another person's turn now.
    let tell = class != outage.class || matches!(class, OutageClass::Key { .. });
    After::Away {
        outage: Outage {
            last_error: error.to_string(),
            probe_at: probe_at(&class, outage.probes, now),
            class,
            ..outage.clone()
        },
        tell,
    }
}

/// A refused key is refused again, so that only who mends it has it tried.
fn probe_at(class: &OutageClass, probes: u32, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match class {
        OutageClass::Unavailable => Some(now + next_probe(probes)),
        OutageClass::Key { .. } => None,
    }
}

/// Returns the pause after so many probes.
pub(super) fn next_probe(probes: u32) -> TimeDelta {
    let doubled = FIRST_PAUSE * (1 << probes.min(8));
    doubled.min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
    }

    fn broken() -> ModelError {
        ModelError::Overloaded {
            status: 503,
            message: "busy".to_owned(),
            retry_after: None,
        }
    }

    fn refused() -> ModelError {
        ModelError::Unauthorized {
            variable: "KEY".to_owned(),
            message: "no".to_owned(),
        }
    }

    fn key() -> OutageClass {
        OutageClass::Key {
            variable: "KEY".to_owned(),
        }
    }

    fn begun(error: &ModelError) -> Outage {
        let class = class_of(error).unwrap();
        met(None, "p", "call/1", &class, error, now()).unwrap()
    }

    #[test]
    fn only_what_nobody_would_be_served_with_is_an_outage() {
        let text = String::new;
        let message = text();
        let cases = [
            (broken(), Some(OutageClass::Unavailable)),
            (refused(), Some(key())),
            (
                ModelError::Network { message },
                Some(OutageClass::Unavailable),
            ),
            (
                ModelError::Refused {
                    status: 400,
                    message: text(),
                },
                None,
            ),
            (
                ModelError::RateLimited {
                    message: text(),
                    retry_after: None,
                },
                None,
            ),
            (ModelError::Truncated, None),
            (ModelError::Cancelled, None),
        ];
        for (error, class) in cases {
            assert_eq!(class_of(&error), class, "{error}");
        }
    }

    #[test]
    fn a_provider_is_looked_at_again_after_growing_pauses_and_a_refused_key_on_a_word() {
        let pauses: Vec<i64> = (0..7)
            .map(|probes| next_probe(probes).num_seconds())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 15, 15, 15]);
        assert_eq!(next_probe(u32::MAX), LONGEST_PAUSE);
        assert_eq!(begun(&broken()).probe_at, Some(now() + FIRST_PAUSE));
        assert_eq!(begun(&refused()).probe_at, None);
    }

    #[test]
    fn a_call_that_meets_one_outage_after_another_is_at_fault_itself() {
        let mut outage = begun(&broken());
        for times in [2, 3] {
            outage = ended(&outage, now());
            let again = met(
                Some(&outage),
                "p",
                "call/1",
                &outage.class,
                &broken(),
                now(),
            );
            outage = again.unwrap();
            assert_eq!(outage.met_by.len(), times);
        }
        outage = ended(&outage, now());
        let class = OutageClass::Unavailable;
        assert_eq!(
            met(Some(&outage), "p", "call/1", &class, &broken(), now()),
            None
        );
        let other = met(Some(&outage), "p", "call/2", &class, &broken(), now());
        assert!(other.is_some_and(|outage| outage.stands()));
    }

    #[test]
    fn whoever_answers_is_back_and_what_a_person_has_to_mend_is_told_again() {
        let later = now() + TimeDelta::minutes(1);
        let refusal = ModelError::Refused {
            status: 400,
            message: String::new(),
        };
        let mut away = begun(&broken());
        away.probes = 3;
        for met in [None, Some(&refusal), Some(&ModelError::Truncated)] {
            assert_eq!(after_probe(&away, met, later), After::Back, "{met:?}");
        }
        let cases = [
            (&away, broken(), Some(later + TimeDelta::seconds(8)), false),
            (&away, refused(), None, true),
            (&begun(&refused()), refused(), None, true),
            (
                &begun(&refused()),
                broken(),
                Some(later + FIRST_PAUSE),
                true,
            ),
        ];
        for (before, error, probe_at, told) in cases {
            let After::Away { outage, tell } = after_probe(before, Some(&error), later) else {
                panic!("{error} is no answer");
            };
            assert_eq!((outage.probe_at, tell), (probe_at, told), "{error}");
            assert_eq!(
                (outage.since, outage.last_error),
                (now(), error.to_string())
            );
        }
    }
}
