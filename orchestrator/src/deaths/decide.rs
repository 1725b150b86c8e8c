//! Decides what a death of the program says about what it had in hand. Pure (design §3, invariant 14).
//!
//! A killed program is no killer, and the next start cannot see who ended the one before. So whatever was in hand is
//! charged, and everything that speaks for it takes the charge back: it ended, or it came further than ever before, or
//! the program died although it was *not* in hand. That last one is asked for: after two deaths a start waits before it
//! hands out anything, longer each time, and whoever kills programs from outside hits that wait sooner or later.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_runtime::in_hand::WorkItem;
use ropewalk_schemas::deaths::Deaths;

/// From so many deaths on a suspect runs alone.
const ALONE_FROM: u32 = 2;
/// After so many it does not run again before a person said so.
const PARKED_FROM: u32 = 5;
/// How long the first start that tries a suspect alone waits before that.
const QUIET: Duration = Duration::from_secs(3);
/// What is in hand while a start waits.
pub(super) const NOTHING: &str = "nothing";

/// What follows from the deaths of one piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs beside everything else.
    Free,
    /// It runs alone until it has got further.
    Alone,
    /// It does not run again by itself.
    Parked,
}

/// Returns what follows from so many deaths in a row.
pub fn verdict(count: u32) -> Verdict {
    match count {
        PARKED_FROM.. => Verdict::Parked,
        ALONE_FROM.. => Verdict::Alone,
        _ => Verdict::Free,
    }
}

/// Returns how long a start waits that is about to try something that the program died of so often.
pub fn quiet(count: u32) -> Duration {
    QUIET * 2_u32.saturating_pow(count.saturating_sub(ALONE_FROM).min(8))
}

/// What a death changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What was in hand, as it stands now.
    pub charged: Vec<Deaths>,
    /// What is no suspect any more: the program died without it.
    pub acquitted: Vec<String>,
}

/// Judges what was in `hand` when the program died, by the deaths `before`.
pub fn judge(before: &[Deaths], hand: &[WorkItem], now: DateTime<Utc>) -> Judgement {
    if hand.iter().any(|held| held.entity == NOTHING) {
        return Judgement {
            charged: Vec::new(),
            acquitted: before.iter().map(|deaths| deaths.entity.clone()).collect(),
        };
    }
    let charge = |held: &WorkItem| {
        let before = before.iter().find(|deaths| deaths.entity == held.entity);
        charged(before, held, now)
    };
    Judgement {
        charged: hand.iter().map(charge).collect(),
        acquitted: Vec::new(),
    }
}

/// Counts one more death; who died further on than ever has made progress, and this is its first.
///
/// Who died earlier than before has not: a new run of the same work comes by what it has passed already.
fn charged(before: Option<&Deaths>, held: &WorkItem, now: DateTime<Utc>) -> Deaths {
    let (step, count) = match before {
        Some(before) if held.step <= before.step => (before.step, before.count + 1),
        _ => (held.step, 1),
    };
    Deaths {
        entity: held.entity.clone(),
        step,
        count,
        last_at: now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deaths(entity: &str, step: u32, count: u32) -> Deaths {
        Deaths {
            entity: entity.to_owned(),
            step,
            count,
            last_at: DateTime::UNIX_EPOCH,
        }
    }

    fn held(entity: &str, step: u32) -> WorkItem {
        WorkItem {
            entity: entity.to_owned(),
            step,
        }
    }

    #[test]
    fn two_deaths_isolate_and_five_park() {
        let cases = [
            (0, Verdict::Free),
            (1, Verdict::Free),
            (2, Verdict::Alone),
            (4, Verdict::Alone),
            (5, Verdict::Parked),
            (6, Verdict::Parked),
        ];
        for (count, expected) in cases {
            assert_eq!(verdict(count), expected, "{count}");
        }
    }

    #[test]
    fn each_further_trial_waits_longer() {
        let seconds: Vec<u64> = [2, 3, 4, 100].map(|count| quiet(count).as_secs()).into();
        assert_eq!(seconds, [3, 6, 12, 768]);
    }

    #[test]
    fn a_death_charges_what_was_in_hand_unless_that_came_further() {
        let cases = [
            // Never died of before.
            (None, 4, (4, 1)),
            // The same step again, and again.
            (Some((4, 1)), 4, (4, 2)),
            (Some((4, 4)), 4, (4, 5)),
            // A new run that died earlier has passed nothing new.
            (Some((4, 2)), 1, (4, 3)),
            // One that died later has.
            (Some((4, 4)), 5, (5, 1)),
        ];
        for (before, step, (at, count)) in cases {
            let before: Vec<Deaths> = before
                .map(|(step, count)| deaths("a", step, count))
                .into_iter()
                .chain([deaths("innocent", 1, 2)])
                .collect();
            let judgement = judge(&before, &[held("a", step)], DateTime::UNIX_EPOCH);
            let expected = Judgement {
                charged: vec![deaths("a", at, count)],
                acquitted: Vec::new(),
            };
            assert_eq!(judgement, expected, "{before:?} {step}");
        }
    }

    #[test]
    fn a_death_with_nothing_in_hand_acquits_every_suspect() {
        let before = [deaths("a", 4, 4), deaths("b", 1, 2)];
        let judgement = judge(&before, &[held(NOTHING, 0)], DateTime::UNIX_EPOCH);
        assert_eq!(judgement.charged, []);
        assert_eq!(judgement.acquitted, ["a", "b"]);
    }

    #[test]
    fn a_process_that_did_not_die_says_nothing() {
        let before = [deaths("a", 4, 4)];
        assert_eq!(
            judge(&before, &[], DateTime::UNIX_EPOCH),
            Judgement::default()
        );
    }

    /// Plays starts of a program against the rule; `hand` says what start number n died with.
    fn play(
        starts: u32,
        mut hand: impl FnMut(u32, Option<&Deaths>) -> Vec<WorkItem>,
    ) -> Vec<Deaths> {
        let mut standing: Vec<Deaths> = Vec::new();
        for start in 0..starts {
            let suspect = standing.iter().max_by_key(|deaths| deaths.count);
            let suspect = suspect.filter(|deaths| verdict(deaths.count) == Verdict::Alone);
            let judgement = judge(&standing, &hand(start, suspect), DateTime::UNIX_EPOCH);
            standing.retain(|deaths| {
                let key = &deaths.entity;
                !judgement.acquitted.contains(key)
                    && judgement
                        .charged
                        .iter()
                        .all(|charged| charged.entity != *key)
            });
            standing.extend(judgement.charged);
        }
        standing
    }

    #[test]
    fn a_killer_among_innocents_is_parked_by_its_fifth_death_and_alone() {
        let standing = play(5, |_, suspect| match suspect {
            None => vec![held("killer", 7), held("innocent", 3)],
            // The innocent ends when it runs alone, so only the killer is ever in hand again.
            Some(_) => vec![held("killer", 7)],
        });
        let counts: Vec<(&str, u32)> = standing
            .iter()
            .map(|deaths| (deaths.entity.as_str(), deaths.count))
            .collect();
        assert_eq!(counts, [("innocent", 2), ("killer", 5)]);
    }

    #[test]
    fn hundreds_of_kills_park_nothing_if_some_of_them_come_while_a_start_waits() {
        let mut most = 0;
        play(600, |start, suspect| {
            most = most.max(suspect.map_or(0, |suspect| suspect.count));
            match suspect {
                // Kills within the wait of three, six or twelve seconds.
                Some(_) => vec![held(NOTHING, 0)],
                None => vec![held("long", start % 2)],
            }
        });
        assert_eq!(most, 2);
    }
}
