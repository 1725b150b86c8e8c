//! Says at once that words are kept and what they wait for, where nobody answers them now.

use chrono::{DateTime, Utc};
use ropewalk_desk::halt;
use ropewalk_desk::views::build;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::outage::{Outage, OutageClass};
use ropewalk_schemas::phone::Phone;

use super::made_at;
use crate::surface::{Surface, SurfaceError};

/// What words wait for, since when, and what ends it.
struct Silence {
    since: DateTime<Utc>,
    why: String,
    end: String,
}

impl From<Halt> for Silence {
    fn from(halt: Halt) -> Self {
        Self {
            since: halt.since,
            why: halt.in_words(),
            end: "once /resumeall lets everything go on".to_owned(),
        }
    }
}

impl From<Outage> for Silence {
    fn from(outage: Outage) -> Self {
        let end = match &outage.class {
            OutageClass::Unavailable => "as soon as it is back".to_owned(),
            OutageClass::Key { variable } => format!(
                "once somebody sets `{variable}` anew where the program runs, and starts it again"
            ),
        };
        Self {
            since: outage.since,
            why: outage.in_words(),
            end,
        }
    }
}

/// Returns what to say to somebody who writes now; nothing where words are answered, or where this silence was told with
/// those that wait on this phone already.
pub(crate) async fn told(surface: &Surface, phone: &Phone) -> Result<Option<String>, SurfaceError> {
    let waits_since = phone.awaits.and_then(made_at);
    let silence = standing(surface).await?;
    let new = silence.filter(|silence| !is_told(silence.since, waits_since));
    Ok(new.map(|Silence { why, end, .. }| {
        format!("Your words are kept and wait: {why}. They are answered {end}.")
    }))
}

/// Returns why nobody is answered now.
async fn standing(surface: &Surface) -> Result<Option<Silence>, SurfaceError> {
    let store = &surface.services.store;
    if let Some(halt) = halt::standing(store).await? {
        return Ok(Some(halt.into()));
    }
    let outage = build::standing_outage(store, &surface.chats_with).await?;
    Ok(outage.map(Into::into))
}

/// Decides whether a silence was told already: with the words that wait, if these came within it.
fn is_told(since: DateTime<Utc>, waits_since: Option<DateTime<Utc>>) -> bool {
    waits_since.is_some_and(|waits| waits >= since)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_silence_is_told_with_the_first_words_within_it() {
        let at = |second| DateTime::<Utc>::UNIX_EPOCH + TimeDelta::seconds(second);
        for (waits_since, expected) in [(None, false), (Some(9), false), (Some(10), true)] {
            assert_eq!(is_told(at(10), waits_since.map(at)), expected);
        }
    }
}
