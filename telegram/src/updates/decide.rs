//! Decides, purely, what becomes of an update of somebody who is known, and what is known of it from then on.

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_schemas::phone::{UpdateProgress, UpdateRecord};

use crate::api::{Interaction, Update};
use crate::commands::{self, Command, TextInput};
use crate::files;
use crate::keyboard::Mark;

/// How long numbers of updates can be compared: they begin anew where nothing was said for a week.
const NUMBERED: TimeDelta = TimeDelta::days(6);

/// Where an update comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Telegram brings it.
    Telegram,
    /// It was kept at this time, until it had its turn.
    Kept(DateTime<Utc>),
}

impl Origin {
    /// Returns the update that was begun last of those from there.
    pub(crate) const fn last(self, progress: &UpdateProgress) -> Option<UpdateRecord> {
        match self {
            Self::Telegram => progress.begun,
            Self::Kept(_) => progress.turn,
        }
    }

    /// Notes an update from there that is begun, and that it stops something where it does.
    pub(super) fn begin(
        self,
        progress: &mut UpdateProgress,
        record: UpdateRecord,
        did: &Interaction,
    ) {
        self.note(progress, record);
        if self == Self::Telegram && stops(did) {
            progress.stopped = Some(record);
        }
    }

    /// Notes that an update from there is done: nothing waits behind it any more, where it was kept last.
    pub(crate) fn end(self, progress: &mut UpdateProgress, record: UpdateRecord) {
        let done = UpdateRecord {
            done: true,
            ..record
        };
        self.note(progress, done);
        let is_it = |kept: &UpdateRecord| (kept.bot, kept.update) == (done.bot, done.update);
        progress.kept = progress.kept.filter(|kept| !is_it(kept));
    }

    const fn note(self, progress: &mut UpdateProgress, record: UpdateRecord) {
        match self {
            Self::Telegram => progress.begun = Some(record),
            Self::Kept(_) => progress.turn = Some(record),
        }
    }
}

/// Notes that an update is kept until it has its turn.
pub(super) fn keep(progress: &mut UpdateProgress, record: UpdateRecord) {
    progress.kept = Some(record);
    // Telegram need not bring it again.
    Origin::Telegram.note(
        progress,
        UpdateRecord {
            done: true,
            ..record
        },
    );
}

/// An update as it comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpdateArrival<'a> {
    pub(super) update: &'a Update,
    pub(super) origin: Origin,
    /// The bot that brings it.
    pub(super) bot: i64,
    pub(super) now: DateTime<Utc>,
}

/// What becomes of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateCourse {
    /// It comes a second time.
    Over {
        /// Whether Telegram brings what was kept: the phone of a press may still wait, where a death came in between.
        is_kept: bool,
    },
    /// It waits until it has its turn.
    Keep,
    /// It is done now.
    Perform(UpdateTurn),
}

/// An update that is done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UpdateTurn {
    /// What is noted of it.
    pub(super) record: UpdateRecord,
    /// Whether no try before this one began it.
    pub(super) is_first: bool,
    /// Whether whoever did it stopped something since.
    pub(super) is_stopped: bool,
}

/// Decides what becomes of an update where a phone is so far. One that brings a file is kept, and so is what its sender does
/// behind it, but for what stops something: what one person does is done in its order, and nobody waits for the file of
/// somebody else.
pub(super) fn course(arrival: UpdateArrival<'_>, progress: UpdateProgress) -> UpdateCourse {
    let UpdateArrival {
        update,
        origin,
        bot,
        now,
    } = arrival;
    let progress = progress.of(bot);
    let last = origin.last(&progress);
    let is_from_telegram = origin == Origin::Telegram;
    if last.is_some_and(|last| is_over(last, update.id, origin, now)) {
        let is_kept = progress.kept.is_some_and(|kept| kept.update == update.id);
        return UpdateCourse::Over {
            is_kept: is_from_telegram && is_kept,
        };
    }
    let waits = files::brings_one(&update.did) || (progress.kept.is_some() && !stops(&update.did));
    if is_from_telegram && waits {
        return UpdateCourse::Keep;
    }
    let begun = last.filter(|last| last.update == update.id);
    UpdateCourse::Perform(UpdateTurn {
        record: begun.unwrap_or(UpdateRecord {
            bot,
            update: update.id,
            at: now,
            done: false,
        }),
        is_first: begun.is_none(),
        is_stopped: match origin {
            Origin::Telegram => false,
            Origin::Kept(at) => is_stopped(update.id, at, &progress),
        },
    })
}

/// Returns whether an update comes a second time.
fn is_over(last: UpdateRecord, update: i64, origin: Origin, now: DateTime<Utc>) -> bool {
    let is_it = last.update == update && last.done;
    match origin {
        // One is begun only after those before it are done.
        Origin::Telegram => (last.update > update || is_it) && now - last.at < NUMBERED,
        // One that was given up, and is handled again, comes behind others that are done.
        Origin::Kept(_) => is_it,
    }
}

/// Returns whether somebody stopped something after an update that was kept, or left, at this time.
pub(crate) fn is_stopped(update: i64, at: DateTime<Utc>, progress: &UpdateProgress) -> bool {
    let is_before = |stop: UpdateRecord| stop.update > update && (stop.at - at).abs() < NUMBERED;
    progress.stopped.is_some_and(is_before)
}

/// Returns whether somebody did something else since an update was begun that is done again.
pub(crate) fn has_gone_on(update: i64, begun: DateTime<Utc>, progress: &UpdateProgress) -> bool {
    let is_other = |record: UpdateRecord| record.update != update && record.at > begun;
    [progress.begun, progress.turn]
        .into_iter()
        .flatten()
        .any(is_other)
}

/// Says whether something is to stop, which waits behind no file: by a command that is typed, or by the button of one.
fn stops(did: &Interaction) -> bool {
    let typed = match did {
        Interaction::Wrote {
            text,
            forwarded: false,
            ..
        } => Some(text.as_str()),
        Interaction::Pressed { data, .. } => Mark::read(data).and_then(|mark| mark.command()),
        _ => None,
    };
    let typed = typed.map(commands::read);
    matches!(
        typed,
        Some(TextInput::Order(Command::Stop | Command::StopAll, _))
    )
}

#[cfg(test)]
mod tests {
    use ropewalk_desk::attachments::FILE_BYTES;

    use super::*;
    use crate::api::{File, Kind};

    const BOT: i64 = 1;
    /// The number of the update that comes, on the day of which it is asked what becomes of it.
    const NUMBER: i64 = 7;
    const DAY: i64 = 10;

    fn day(day: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(day)
    }

    fn record(update: i64, on: i64) -> UpdateRecord {
        UpdateRecord {
            bot: BOT,
            update,
            at: day(on),
            done: false,
        }
    }

    fn done(update: i64, on: i64) -> UpdateRecord {
        UpdateRecord {
            done: true,
            ..record(update, on)
        }
    }

    fn wrote(text: &str) -> Interaction {
        Interaction::Wrote {
            text: text.to_owned(),
            reply_to: None,
            forwarded: false,
            private: true,
        }
    }

    fn sent(size_bytes: Option<u64>) -> Interaction {
        Interaction::Sent {
            file: File {
                id: "notes".to_owned(),
                kind: Kind::Document,
                name: "notes.md".to_owned(),
                media_type: None,
                size_bytes,
            },
            words: String::new(),
            forwarded: false,
        }
    }

    fn of(origin: Origin, did: Interaction, progress: UpdateProgress) -> UpdateCourse {
        let update = Update {
            id: NUMBER,
            from: None,
            did,
        };
        let arrival = UpdateArrival {
            update: &update,
            origin,
            bot: BOT,
            now: day(DAY),
        };
        course(arrival, progress)
    }

    /// It is done now for the first time, and nothing was stopped since.
    const fn first(record: UpdateRecord) -> UpdateCourse {
        UpdateCourse::Perform(UpdateTurn {
            record,
            is_first: true,
            is_stopped: false,
        })
    }

    #[test]
    fn what_telegram_brings_is_done_once_unless_numbers_began_anew() {
        let again = |record| {
            UpdateCourse::Perform(UpdateTurn {
                record,
                is_first: false,
                is_stopped: false,
            })
        };
        let (anew, over) = (
            first(record(NUMBER, DAY)),
            UpdateCourse::Over { is_kept: false },
        );
        let other = UpdateRecord {
            bot: BOT + 1,
            ..done(NUMBER, DAY)
        };
        for (begun, expected) in [
            (None, anew),
            (Some(done(6, DAY)), anew),
            (Some(record(7, 9)), again(record(7, 9))),
            (Some(done(7, DAY)), over),
            (Some(record(8, DAY)), over),
            (Some(done(8, 5)), over),
            (Some(done(8, 4)), anew),
            (Some(other), anew),
        ] {
            let progress = UpdateProgress {
                begun,
                ..UpdateProgress::default()
            };
            let course = of(Origin::Telegram, wrote("By boat"), progress);
            assert_eq!(course, expected, "{begun:?}");
        }
    }

    #[test]
    fn a_file_and_what_stands_behind_it_is_kept_but_for_a_stop() {
        let now = first(record(NUMBER, DAY));
        let (kept, waits) = (Some(record(6, DAY)), UpdateCourse::Keep);
        let passed_on = Interaction::Wrote {
            text: "/stopall".to_owned(),
            reply_to: None,
            forwarded: true,
            private: true,
        };
        let pressed = |data: &str| Interaction::Pressed {
            press: "press".to_owned(),
            message: 1,
            data: data.to_owned(),
        };
        for (kept, did, expected) in [
            (kept, pressed("/stop build/walks:0"), now),
            (kept, pressed("/idea walks:0"), waits),
            (kept, pressed("stop:0"), waits),
            (None, wrote("By boat"), now),
            (None, sent(Some(11)), waits),
            (None, sent(None), waits),
            (None, sent(Some(FILE_BYTES)), waits),
            (None, sent(Some(FILE_BYTES + 1)), now),
            (kept, wrote("By boat"), waits),
            (kept, wrote("/status"), waits),
            (kept, Interaction::Other, waits),
            (kept, passed_on, waits),
            (kept, wrote("/stop walks"), now),
            (kept, wrote("/stopall"), now),
        ] {
            let progress = UpdateProgress {
                begun: kept.map(|kept| UpdateRecord { done: true, ..kept }),
                kept,
                ..UpdateProgress::default()
            };
            let course = of(Origin::Telegram, did.clone(), progress);
            assert_eq!(course, expected, "{did:?}");
        }
    }

    #[test]
    fn what_was_kept_is_done_in_its_turn_whatever_came_directly() {
        let origin = Origin::Kept(day(9));
        let turn = |record, is_first, is_stopped| {
            UpdateCourse::Perform(UpdateTurn {
                record,
                is_first,
                is_stopped,
            })
        };
        let anew = |is_stopped| turn(record(7, DAY), true, is_stopped);
        let over = UpdateCourse::Over { is_kept: false };
        for (before, stopped, expected) in [
            (None, None, anew(false)),
            (Some(done(6, DAY)), None, anew(false)),
            (Some(done(8, DAY)), None, anew(false)),
            (Some(record(7, 9)), None, turn(record(7, 9), false, false)),
            (Some(done(7, DAY)), None, over),
            (None, Some(record(6, 9)), anew(false)),
            (None, Some(done(8, 9)), anew(true)),
            (None, Some(record(8, 14)), anew(true)),
            // It is of another count.
            (None, Some(record(8, 15)), anew(false)),
            (None, Some(record(8, 3)), anew(false)),
            (
                Some(record(7, 9)),
                Some(done(8, DAY)),
                turn(record(7, 9), false, true),
            ),
        ] {
            let progress = UpdateProgress {
                begun: Some(done(9, DAY)),
                kept: Some(record(9, DAY)),
                turn: before,
                stopped,
            };
            // A file is not kept a second time.
            for did in [wrote("/resumeall"), sent(Some(11))] {
                let course = of(origin, did, progress);
                assert_eq!(course, expected, "{before:?} {stopped:?}");
            }
        }
    }

    #[test]
    fn who_did_something_else_since_has_gone_on() {
        for (begun, turn, expected) in [
            (None, None, false),
            (Some(done(6, 8)), Some(done(5, 8)), false),
            // It counts as done where it is handed on, later than it was begun.
            (Some(done(NUMBER, DAY)), None, false),
            (None, Some(done(NUMBER, DAY)), false),
            (Some(done(8, DAY)), None, true),
            (None, Some(record(8, DAY)), true),
            // Numbers begin anew.
            (Some(done(3, DAY)), None, true),
        ] {
            let progress = UpdateProgress {
                begun,
                turn,
                ..UpdateProgress::default()
            };
            let has = has_gone_on(NUMBER, day(9), &progress);
            assert_eq!(has, expected, "{begun:?} {turn:?}");
        }
    }

    #[test]
    fn what_is_noted_of_an_update_lets_it_come_once() {
        let mut progress = UpdateProgress::default();
        keep(&mut progress, record(NUMBER, DAY));
        let course = of(Origin::Telegram, sent(Some(11)), progress);
        assert_eq!(course, UpdateCourse::Over { is_kept: true });
        Origin::Telegram.begin(&mut progress, record(8, DAY), &wrote("/stopall"));
        Origin::Telegram.end(&mut progress, record(8, DAY));
        assert_eq!(progress.stopped, Some(record(8, DAY)));
        assert_eq!(progress.begun, Some(done(8, DAY)));
        assert_eq!(
            progress.kept,
            Some(record(NUMBER, DAY)),
            "it has no turn yet"
        );
        let kept = Origin::Kept(day(DAY));
        kept.begin(&mut progress, record(NUMBER, DAY), &wrote("/stopall"));
        kept.end(&mut progress, record(NUMBER, DAY));
        let expected = UpdateProgress {
            begun: Some(done(8, DAY)),
            kept: None,
            turn: Some(done(NUMBER, DAY)),
            stopped: Some(record(8, DAY)),
        };
        assert_eq!(progress, expected);
    }
}
