//! Draws which loop of a build tried which task when, as a picture that is made here.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use ropewalk_desk::views::build::AttemptView;
use ropewalk_schemas::amount::counted;

use crate::pages::shown;

/// The size of the picture, and where its bars begin.
const WIDTH: u64 = 920;
const LEFT: u64 = 132;
const RIGHT: u64 = 24;
const TOP: u64 = 26;
const ROW: u64 = 28;
/// The least that is still seen, and pointed at.
const THINNEST: u64 = 4;
/// The width of a bar from which on the name of its task fits.
const NAMED: u64 = 46;
/// So many parts the time is cut into.
const PARTS: u64 = 4;

/// A picture of what was tried.
pub(super) struct Timeline {
    pub(super) height: u64,
    pub(super) loops: Vec<Loop>,
    pub(super) bars: Vec<Bar>,
    pub(super) ticks: Vec<Tick>,
}

/// A loop, with where its line begins.
pub(super) struct Loop {
    pub(super) name: String,
    pub(super) y: u64,
}

/// One attempt.
pub(super) struct Bar {
    pub(super) task: String,
    pub(super) label: String,
    pub(super) tone: &'static str,
    pub(super) is_named: bool,
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) width: u64,
}

/// A time since the first attempt began.
pub(super) struct Tick {
    pub(super) label: String,
    pub(super) x: u64,
}

impl Timeline {
    /// Draws what was tried until now; nothing where nothing was.
    pub(super) fn of(tried: &[AttemptView], now: DateTime<Utc>) -> Option<Self> {
        let begun = tried.iter().map(|one| one.started_at).min()?;
        let ended = |one: &AttemptView| one.ended_at.unwrap_or(now).max(one.started_at);
        let end = tried.iter().map(ended).max()?;
        let whole = between(begun, end).max(1);
        let place = |at: DateTime<Utc>| LEFT + between(begun, at) * (WIDTH - LEFT - RIGHT) / whole;
        let names: BTreeSet<&str> = tried.iter().map(|one| one.loop_name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let row = |name: &str| names.iter().position(|known| *known == name).unwrap_or(0);
        let down = |row: usize| TOP + u64::try_from(row).unwrap_or(0) * ROW;
        let bars = tried.iter().map(|one| {
            let x = place(one.started_at);
            let width = place(ended(one)).saturating_sub(x).max(THINNEST);
            Bar {
                task: one.task.to_string(),
                label: label(one, between(one.started_at, ended(one))),
                tone: shown::tone(one.state.as_str()),
                is_named: width >= NAMED,
                x,
                y: down(row(one.loop_name.as_str())),
                width,
            }
        });
        let ticks = (0..=PARTS).map(|part| Tick {
            label: shown::duration(whole * part / PARTS),
            x: LEFT + part * (WIDTH - LEFT - RIGHT) / PARTS,
        });
        Some(Self {
            height: down(names.len()) + 4,
            bars: bars.collect(),
            ticks: ticks.collect(),
            loops: names
                .iter()
                .enumerate()
                .map(|(number, name)| Loop {
                    name: (*name).to_owned(),
                    y: down(number),
                })
                .collect(),
        })
    }
}

/// Returns the milliseconds between two times.
fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> u64 {
    u64::try_from((to - from).num_milliseconds()).unwrap_or(0)
}

fn label(one: &AttemptView, milliseconds: u64) -> String {
    let took = shown::duration(milliseconds);
    let (task, number, state) = (&one.task, one.number, one.state);
    format!(
        "{task}, try {number}: {state}, {took}, {}",
        counted(one.tokens, "token")
    )
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use ropewalk_schemas::attempt::AttemptState;
    use ropewalk_schemas::{ComponentName, TaskId};

    use super::*;

    fn tried(task: &str, loop_name: &str, from: i64, to: Option<i64>) -> AttemptView {
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        AttemptView {
            task: TaskId::parse(task).unwrap(),
            number: 1,
            round: 1,
            loop_name: ComponentName::parse(loop_name).unwrap(),
            state: AttemptState::Landed,
            tokens: 12,
            started_at: at(from),
            ended_at: to.map(at),
        }
    }

    #[test]
    fn each_loop_has_a_line_and_each_attempt_a_bar_as_long_as_it_took() {
        let all = [
            tried("T-001", "loop-2", 0, Some(50)),
            tried("T-002", "loop-1", 0, Some(0)),
            tried("T-003", "loop-1", 50, None),
        ];
        let now = DateTime::UNIX_EPOCH + TimeDelta::seconds(100);
        let drawn = Timeline::of(&all, now).unwrap();
        let names: Vec<&str> = drawn.loops.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["loop-1", "loop-2"]);
        let half = (WIDTH - LEFT - RIGHT) / 2;
        let bars = drawn
            .bars
            .iter()
            .map(|bar| (bar.x, bar.y, bar.width, bar.is_named));
        assert_eq!(
            bars.collect::<Vec<_>>(),
            [
                (LEFT, TOP + ROW, half, true),
                (LEFT, TOP, THINNEST, false),
                (LEFT + half, TOP, half, true),
            ]
        );
        assert_eq!(
            drawn.bars[0].label,
            "T-001, try 1: landed, 50.0 s, 12 tokens"
        );
        assert_eq!(drawn.ticks.last().unwrap().label, "1 min 40 s");
        assert!(Timeline::of(&[], now).is_none());
    }
}
