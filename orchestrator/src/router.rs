//! Checks who is woken by what before anything runs (seed pipeline §2.1, §2.2).
//!
//! A person's message is an `ideation.message`, a timer is a `schedule.due`: with that, the whole routing
//! tree of the source is one table of patterns, and the store writes one delivery row for each match.

use ropewalk_schemas::{ComponentName, EventPattern, Payload};

use crate::agent::Profile;

/// Says why a set of agents cannot run together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// Two agents have one name.
    #[error("two agents are named `{0}`")]
    DuplicateRole(ComponentName),
    /// A pattern selects no event type that exists.
    #[error("agent `{role}` subscribes to `{pattern}`, which matches no event type")]
    UnknownType {
        /// The agent.
        role: ComponentName,
        /// The pattern.
        pattern: String,
    },
    /// An agent may take nothing at a time, or too much.
    #[error("agent `{role}` has {in_flight} deliveries in flight; 1 to 64 are allowed")]
    InFlight {
        /// The agent.
        role: ComponentName,
        /// The number given.
        in_flight: usize,
    },
}

/// Checks that the agents can run together.
pub fn check(profiles: &[Profile]) -> Result<(), RoutingError> {
    let mut names = std::collections::BTreeSet::new();
    for profile in profiles {
        if !names.insert(&profile.role) {
            return Err(RoutingError::DuplicateRole(profile.role.clone()));
        }
        if !(1..=64).contains(&profile.in_flight) {
            return Err(RoutingError::InFlight {
                role: profile.role.clone(),
                in_flight: profile.in_flight,
            });
        }
        if let Some(pattern) = profile
            .patterns
            .iter()
            .find(|pattern| !selects_a_type(pattern))
        {
            return Err(RoutingError::UnknownType {
                role: profile.role.clone(),
                pattern: pattern.event_type.clone(),
            });
        }
    }
    Ok(())
}

fn selects_a_type(pattern: &EventPattern) -> bool {
    let any_source = EventPattern::of(&pattern.event_type);
    ComponentName::parse("any").is_ok_and(|source| {
        Payload::TYPES
            .iter()
            .any(|known| any_source.matches(known, &source))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(role: &str, patterns: &[&str]) -> Profile {
        Profile {
            role: ComponentName::parse(role).unwrap(),
            patterns: patterns
                .iter()
                .map(|pattern| EventPattern::of(pattern))
                .collect(),
            in_flight: 1,
            schedules: Vec::new(),
        }
    }

    #[test]
    fn agents_that_cannot_run_together_are_refused() {
        let pm = profile("pm", &["alert.*"]);
        assert_eq!(check(std::slice::from_ref(&pm)), Ok(()));
        assert_eq!(
            check(&[pm.clone(), pm.clone()]),
            Err(RoutingError::DuplicateRole(pm.role.clone()))
        );
        let stray = profile("pm", &["alarm.*"]);
        assert!(matches!(
            check(&[stray]),
            Err(RoutingError::UnknownType { .. })
        ));
        assert!(matches!(
            check(&[Profile { in_flight: 0, ..pm }]),
            Err(RoutingError::InFlight { .. })
        ));
    }
}
