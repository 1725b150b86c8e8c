//! Decides who is told, when, and when to give up.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use ropewalk_config::questions::Trigger;
use ropewalk_config::settings::{NoticeSettings, QuietHours, TimeOfDay};
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::person::{Right, Role};
use ropewalk_schemas::question::Question;

use crate::questions;

/// How long something is tried that is no question; those are tried as long as they are open.
const WORTH_TELLING: TimeDelta = TimeDelta::hours(24);
/// How long the first pause after a failure is; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// How long the longest pause is.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Somebody who may be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The name.
    pub name: UserSlug,
    /// What this person is asked about.
    pub roles: BTreeSet<Role>,
    /// What this person may do that not everybody may.
    pub rights: BTreeSet<Right>,
    /// Whether this person wants the daily summary.
    pub summary: bool,
}

/// When what is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// After which a question that nobody answered goes to everybody.
    pub escalate: Duration,
    /// How long what holds nothing up is gathered.
    pub batch: Duration,
    /// When only what holds work up is told.
    pub quiet: Option<QuietHours>,
    /// When each day is summed up; never without it.
    pub summary: Option<TimeOfDay>,
}

impl From<&NoticeSettings> for Rules {
    fn from(settings: &NoticeSettings) -> Self {
        Self {
            escalate: Duration::from_mins(settings.escalate_minutes.into()),
            batch: Duration::from_mins(settings.batch_minutes.into()),
            quiet: settings.quiet,
            summary: settings.summary,
        }
    }
}

/// How soon something has to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Work stands still: at once, at any hour.
    Blocking,
    /// It is what somebody decided a moment ago, and looks for: at once, at any hour.
    Awaited,
    /// At once, but for quiet hours.
    Soon,
    /// With whatever else there is by then.
    Gathered,
}

impl Urgency {
    /// Returns whether it is told alone, and aloud.
    pub(super) const fn is_urgent(self) -> bool {
        matches!(self, Self::Blocking | Self::Awaited)
    }
}

/// Decides who of `people` hears what concerns `role`: those who have it; everybody where nobody has.
pub(super) fn audience(role: Role, people: &[Listener]) -> Vec<UserSlug> {
    let named: Vec<UserSlug> = people
        .iter()
        .filter(|person| person.roles.contains(&role))
        .map(|person| person.name.clone())
        .collect();
    if named.is_empty() {
        return people.iter().map(|person| person.name.clone()).collect();
    }
    named
}

/// Decides who of `people` is asked a question at once: who `talks` in the conversation that it belongs to, since it is theirs and
/// what they say next is heard as its answer, else those of its role; and whoever may choose what nobody of them may.
pub(super) fn asked(
    question: &Question,
    talks: &BTreeSet<UserSlug>,
    people: &[Listener],
) -> Vec<UserSlug> {
    let talkers = people.iter().filter(|one| talks.contains(&one.name));
    let mut first: Vec<UserSlug> = talkers.map(|one| one.name.clone()).collect();
    if first.is_empty() {
        first = audience(questions::role(question), people);
    }
    let trigger = Trigger::parse(&question.trigger);
    let choices = question.choices.iter();
    let rights = choices.filter_map(|choice| trigger?.right(&choice.id));
    // To give up is a way out of every question, and not what it waits for.
    for right in rights.filter(|right| *right != Right::Stop) {
        let holders = people.iter().filter(|one| one.rights.contains(&right));
        let holders: Vec<UserSlug> = holders.map(|one| one.name.clone()).collect();
        if !holders.iter().any(|holder| first.contains(holder)) {
            first.extend(holders);
        }
    }
    first
}

/// Decides whether an open question waits for nobody of whom a port reaches by now: since the port was there, it was `told` to
/// others alone, or to nobody.
pub(super) fn is_unheard(told: &[&Notice], reachable: &[String]) -> bool {
    let is_here = |notice: &&Notice| reachable.contains(&notice.receiver);
    !told.is_empty() && !told.iter().any(is_here)
}

/// Decides when something is told that is known at `now`.
pub(super) fn due(now: DateTime<Utc>, urgency: Urgency, rules: &Rules) -> DateTime<Utc> {
    let due = match urgency {
        Urgency::Blocking | Urgency::Awaited => return now,
        Urgency::Soon => now,
        Urgency::Gathered => now + rules.batch,
    };
    let minute = due.hour() * 60 + due.minute();
    let over = rules.quiet.and_then(|quiet| quiet.over_after(minute));
    over.map_or(due, |minutes| {
        let end = due + TimeDelta::minutes(minutes.into());
        end - TimeDelta::seconds(end.second().into())
    })
}

/// The event that makes nothing of its kind before it old: what a task got it has.
const STAYS: &str = "lock.extended";

/// Decides whether what was to be told `before` is no longer news by what came after it about the same thing.
pub(super) fn is_old(before: &str, after: &str) -> bool {
    after != STAYS && matter(before) == matter(after)
}

/// Returns the matter that an event tells the newest state of: each sort of alert is one, with how it grows worse and with
/// its end; of all else, a family of events is.
fn matter(event_type: &str) -> &str {
    match event_type.split_once('.') {
        Some(("alert", _)) => [".escalated", ".cleared"]
            .iter()
            .find_map(|suffix| event_type.strip_suffix(suffix))
            .unwrap_or(event_type),
        Some((family, _)) => family,
        None => event_type,
    }
}

/// Decides how long to wait after so many failures, unless somebody asked for more.
pub(super) fn pause(failures: u32, asked: Option<Duration>) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST_PAUSE).max(asked.unwrap_or_default())
}

/// Decides whether a notice is too old to be worth another try.
pub(super) fn is_given_up(notice: &Notice, now: DateTime<Utc>) -> bool {
    notice.question.is_none() && now - notice.created_at >= WORTH_TELLING
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    fn person(name: &str, roles: &[Role]) -> Listener {
        Listener {
            name: UserSlug::parse(name).unwrap(),
            roles: roles.iter().copied().collect(),
            rights: BTreeSet::new(),
            summary: true,
        }
    }

    #[test]
    fn a_matter_is_a_family_of_events_or_a_sort_of_alert() {
        let cases = [
            ("build.started", "build.completed", true),
            ("build.completed", "review.completed", false),
            ("task.completed", "work.assigned", false),
            ("work.assigned", "work.assigned", true),
            ("lock.extended", "lock.extended", false),
            ("alert.stuck_task", "alert.stuck_task.cleared", true),
            ("alert.stuck_task", "alert.stuck_task.escalated", true),
            ("alert.stuck_task", "alert.deadlock", false),
        ];
        for (before, after, same) in cases {
            assert_eq!(is_old(before, after), same, "{before} {after}");
        }
    }

    #[test]
    fn those_of_the_role_hear_it_and_everybody_where_nobody_has_it() {
        let people = [
            person("ada", &[Role::Product]),
            person("bob", &[Role::Technical, Role::Product]),
        ];
        let heard = |role| -> Vec<String> {
            let heard = audience(role, &people).into_iter();
            heard.map(|name| name.to_string()).collect()
        };
        assert_eq!(heard(Role::Product), ["ada", "bob"]);
        assert_eq!(heard(Role::Technical), ["bob"]);
        assert_eq!(heard(Role::Operations), ["ada", "bob"]);
    }

    #[test]
    fn a_question_is_unheard_where_nobody_who_is_here_was_told() {
        let told = |receivers: &[&str]| -> Vec<Notice> {
            let of = |receiver: &&str| {
                serde_json::from_value(serde_json::json!({
                    "key": receiver, "port": "paper", "receiver": receiver, "event_type": "question.asked",
                    "subject": "project", "text": { "title": "" }, "urgent": true, "state": "sent", "outdated": false,
                    "nonce": "", "tries": 0, "repeats": 0, "due": DateTime::UNIX_EPOCH, "created_at": DateTime::UNIX_EPOCH,
                }))
                .unwrap()
            };
            receivers.iter().map(of).collect()
        };
        let here = ["ada".to_owned()];
        for (receivers, expected) in [
            // It was asked before the port was switched on.
            (&[][..], false),
            (&[""], true),
            (&["eve"], true),
            (&["eve", "ada"], false),
        ] {
            let told = told(receivers);
            let told: Vec<&Notice> = told.iter().collect();
            assert_eq!(is_unheard(&told, &here), expected, "{receivers:?}");
        }
    }

    #[test]
    fn who_talks_is_asked_at_once_else_the_role_and_whoever_may_decide_too() {
        let people = [
            Listener {
                rights: [Right::Approve].into(),
                ..person("ada", &[Role::Product])
            },
            person("bob", &[Role::Technical]),
            person("cleo", &[Role::Operations]),
        ];
        let question = |trigger: &str, choice: &str| -> Question {
            let (id, at) = (uuid::Uuid::nil(), DateTime::UNIX_EPOCH);
            let choices =
                [serde_json::json!({ "id": choice, "label": "Yes", "recommended": false })];
            serde_json::from_value(serde_json::json!({
                "id": id, "kind": "blocking", "trigger": trigger, "agent": "ideation", "text": "Go on?", "context": "",
                "choices": choices, "free_text": false, "consequential": false, "about": { "kind": "nothing" },
                "state": "pending", "correlation_id": id, "asked_at": at,
            }))
            .unwrap()
        };
        let talks = |name: &str| BTreeSet::from([UserSlug::parse(name).unwrap()]);
        for (trigger, choice, talks, expected) in [
            (
                "decision_needed",
                "allow-call",
                BTreeSet::new(),
                vec!["bob", "ada"],
            ),
            ("decision_needed", "leave", BTreeSet::new(), vec!["bob"]),
            ("put_by_a_model", "leave", talks("cleo"), vec!["cleo"]),
            // Nobody here is called so any more.
            ("put_by_a_model", "leave", talks("eve"), vec!["bob"]),
            (
                "decision_needed",
                "allow-call",
                talks("cleo"),
                vec!["cleo", "ada"],
            ),
        ] {
            let names = asked(&question(trigger, choice), &talks, &people);
            let names: Vec<&str> = names.iter().map(UserSlug::as_str).collect();
            assert_eq!(names, expected, "{trigger} {choice}");
        }
    }

    #[test]
    fn what_holds_work_up_is_told_at_once_and_all_else_after_quiet_hours() {
        let rules = Rules {
            escalate: Duration::from_hours(1),
            batch: Duration::from_mins(5),
            quiet: QuietHours::try_from("22:00-07:00".to_owned()).ok(),
            summary: None,
        };
        let at = |hour, minute, second| {
            let at = Utc.with_ymd_and_hms(2026, 11, 21, hour, minute, second);
            at.single().unwrap()
        };
        for (now, urgency, expected) in [
            (at(21, 54, 59), Urgency::Gathered, at(21, 59, 59)),
            (at(21, 59, 59), Urgency::Soon, at(21, 59, 59)),
            (at(3, 0, 1), Urgency::Blocking, at(3, 0, 1)),
            (at(3, 0, 1), Urgency::Soon, at(7, 0, 0)),
            (at(6, 54, 30), Urgency::Gathered, at(7, 0, 0)),
            (at(6, 55, 0), Urgency::Gathered, at(7, 0, 0)),
            (at(7, 0, 0), Urgency::Soon, at(7, 0, 0)),
        ] {
            assert_eq!(due(now, urgency, &rules), expected, "{now} {urgency:?}");
        }
        let evening = due(at(21, 55, 0), Urgency::Gathered, &rules);
        assert_eq!(evening, at(7, 0, 0) + TimeDelta::days(1));
    }

    #[test]
    fn each_pause_is_twice_the_last_up_to_five_minutes_and_never_shorter_than_asked_for() {
        let seconds = |failures, asked: Option<u64>| {
            pause(failures, asked.map(Duration::from_secs)).as_secs()
        };
        assert_eq!(
            [1, 2, 3, 8, 9, 40].map(|failures| seconds(failures, None)),
            [2, 4, 8, 256, 300, 300]
        );
        assert_eq!(seconds(1, Some(35)), 35);
        assert_eq!(seconds(3, Some(1)), 8);
        assert_eq!(seconds(40, Some(900)), 900);
    }
}
