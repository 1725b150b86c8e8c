//! Loads what the screen shows, from the views that lists print.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_desk::halt;
use ropewalk_desk::views::usage::Scope;
use ropewalk_desk::views::wait::WaitRow;
use ropewalk_desk::views::{agent, question, usage, wait};
use ropewalk_runtime::terminal;
use ropewalk_schemas::model_call::{Spending, UsageBy};
use ropewalk_store::Query;

use crate::error::CliError;
use crate::ids::last_digits;
use crate::wiring::{self, Gone, OpenProject};

/// What there is to see at one moment, as it was written: only [`Picture::visible`] is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) project: String,
    pub(super) at: String,
    /// Who stopped everything, if anybody has.
    pub(super) halt: Option<String>,
    /// Loops and agents: name, state, what they work on, since when.
    pub(super) parts: Vec<[String; 4]>,
    /// Who waits for what, since when.
    pub(super) waits: Vec<[String; 3]>,
    /// Open questions: id, what is asked, since when.
    pub(super) questions: Vec<[String; 3]>,
    /// By model: calls, tokens, money; the sums of today and of all first.
    pub(super) spend: Vec<[String; 4]>,
}

impl Picture {
    /// Looks at the store.
    pub(super) async fn of(opened: &OpenProject) -> Result<Self, CliError> {
        let (store, now) = (&opened.store, opened.clock.now());
        let down_after = opened.project.config().monitor.component_down_seconds;
        let down_after = Duration::from_secs(down_after.into());
        let mut parts = Vec::new();
        let running = agent::list(store, false).await?;
        let gone = Gone::of(&opened.project, &running)?;
        for part in &running {
            parts.push([
                part.name.to_string(),
                gone.state(part, down_after, now).to_owned(),
                agent::work(part, store).await?,
                ago(part.since, now),
            ]);
        }
        let waits = wait::list(store).await?;
        let ideas = wait::ideas_of(store, &waits, &[]).await?;
        let waits = waits.iter().map(|row| {
            let (waiter, resource) = match row {
                WaitRow::Party(wait) => {
                    (wait::party_in_words(&wait.waiter, &ideas), &wait.resource)
                }
                WaitRow::Other(asking) => (asking.name(), &asking.resource),
            };
            let resource = wait::resource_in_words(resource);
            [waiter, resource, ago(row.since(), now)]
        });
        let questions = question::list(store, None, false).await?;
        let questions = questions.iter().map(|row| {
            let question = &row.question;
            let id = last_digits(question.id);
            [id, question.text.clone(), ago(question.asked_at, now)]
        });
        Ok(Self {
            project: opened.project.locations.name.to_string(),
            at: now.format("%H:%M:%S UTC").to_string(),
            halt: halt::standing(store)
                .await?
                .map(|halt| wiring::halt_in_words(&halt)),
            parts,
            waits: waits.collect(),
            questions: questions.collect(),
            spend: spend(opened, now).await?,
        })
    }

    /// Returns it with every text on one line, in which what a terminal would obey is shown, whoever wrote it.
    pub(super) fn visible(&self) -> Self {
        fn rows<const N: usize>(rows: &[[String; N]]) -> Vec<[String; N]> {
            let row = |row: &[String; N]| std::array::from_fn(|number| plain(&row[number]));
            rows.iter().map(row).collect()
        }
        let Self {
            project,
            at,
            halt,
            parts,
            waits,
            questions,
            spend,
        } = self;
        Self {
            project: plain(project),
            at: plain(at),
            halt: halt.as_deref().map(plain),
            parts: rows(parts),
            waits: rows(waits),
            questions: rows(questions),
            spend: rows(spend),
        }
    }
}

/// Sums what was used today and ever, then by model.
async fn spend(opened: &OpenProject, now: DateTime<Utc>) -> Result<Vec<[String; 4]>, CliError> {
    let everything = Scope::default();
    let days = usage::list(&opened.store, UsageBy::Day, &everything).await?;
    let today = now.format("%Y-%m-%d").to_string();
    let today = days
        .iter()
        .find(|day| day.usage.key.as_deref() == Some(&today));
    let today = today.map(|day| day.usage.spending()).unwrap_or_default();
    let ever = opened.store.spending(Query::new()).await?;
    let row = |name: &str, spent: &Spending| {
        [
            name.to_owned(),
            spent.calls.to_string(),
            spent.tokens.to_string(),
            spent.money(),
        ]
    };
    let mut rows = vec![row("today", &today), row("ever", &ever)];
    let models = usage::list(&opened.store, UsageBy::Model, &everything).await?;
    rows.extend(models.iter().map(|model| {
        let name = model.usage.key.as_deref().unwrap_or("none");
        row(name, &model.usage.spending())
    }));
    Ok(rows)
}

/// Returns a text on one line, in which what a terminal would obey is shown.
fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    terminal::visible(&line).into_owned()
}

/// Says how long ago something was, in its largest unit.
fn ago(since: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - since).num_seconds().max(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(30);
        for (seconds, told) in [
            (-1, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_599, "59 min"),
            (3_600, "1 h"),
            (86_400, "1 d"),
        ] {
            assert_eq!(ago(now - TimeDelta::seconds(seconds), now), told);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(plain("a\n\u{1b}[31m b"), "a \u{241b}[31m b");
    }
}
