//! How values stand on pages: times in the reader's zone, money and tokens as they are known, states in one word.

use axum::http::StatusCode;
use chrono::{DateTime, NaiveDateTime, Utc};
use ropewalk_runtime::terminal;
use ropewalk_schemas::clip;
use ropewalk_schemas::task::TaskBlock;
use ropewalk_store::Record;
use serde::Serialize;

use crate::problem::Problem;
use crate::shared::ServerState;

/// Finds the row that an id of a path names; `list` says where to look for one that names nothing.
pub(super) async fn find<R: Record>(
    shared: &ServerState,
    id: &str,
    noun: &str,
    list: &str,
) -> Result<R, Problem> {
    let unknown = || {
        let text = format!("no {noun} is called `{}`; {list}", clip::line(id, 80));
        Problem::new(StatusCode::NOT_FOUND, "unknown-id", text)
    };
    let whole = id.parse::<uuid::Uuid>().map_err(|_| unknown())?;
    let found = shared.services.store.get::<R>(&whole.to_string()).await?;
    Ok(found.ok_or_else(unknown)?.into_inner())
}

/// What follows a time that a text names.
const ZONE: &str = " UTC";

/// Returns a time as markup: a script tells it in the zone of the reader, and without one it is in UTC.
pub(super) fn time(at: &DateTime<Utc>) -> String {
    format!(
        "<time datetime=\"{}\">{} UTC</time>",
        at.format("%Y-%m-%dT%H:%M:%SZ"),
        at.format("%Y-%m-%d %H:%M")
    )
}

/// Returns the name of the class that a state is drawn by: how it goes, in colour beside the word.
pub(super) fn tone(state: &str) -> &'static str {
    match state {
        "complete" | "succeeded" | "landed" | "approved" | "met" | "met-by-new-tests"
        | "weakly-met" | "met-unseen" | "passed" | "answered" | "active" | "confirmed" => "good",
        "failed" | "rejected" | "blocked" | "unverified" | "silent" | "dead" | "critical" => "bad",
        "running" | "working" | "validating" | "landing" | "verifying" | "claimed" | "priming" => {
            "busy"
        }
        "generated" | "waiting" | "pending" | "paused" | "held" | "blocking" | "captured"
        | "warning" => "waits",
        _ => "calm",
    }
}

/// Returns the written form of a word that has one in the records.
pub(super) fn word(value: impl Serialize) -> String {
    let written = serde_json::to_value(value).unwrap_or_default();
    written.as_str().unwrap_or_default().to_owned()
}

/// Returns a duration in the two units that say most.
pub(super) fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    match seconds {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{seconds}.{} s", milliseconds % 1_000 / 100),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Returns what a task comes to in very few words, for a picture.
pub(super) fn comes_to(block: &TaskBlock) -> String {
    let first = block.requirements.first().map(|line| line.text.trim());
    let told = block.title().or(first).filter(|text| !text.is_empty());
    told.map_or_else(|| block.in_words(), str::to_owned)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Returns a text as markup, in which the times that it names in UTC are told as all others are.
pub(super) fn with_times(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(ZONE) {
        match time_at_end(before) {
            Some((words, at)) => shown.extend([escape(words), time(&at)]),
            None => shown.extend([escape(before), ZONE.to_owned()]),
        }
        rest = after;
    }
    shown + &escape(rest)
}

/// Splits a text into what stands before the time at its end, and that time.
fn time_at_end(text: &str) -> Option<(&str, DateTime<Utc>)> {
    let mut words = text.rsplitn(3, ' ');
    let (clock, day) = (words.next()?, words.next()?);
    let (words, told) = text.split_at(text.len() - day.len() - 1 - clock.len());
    let forms = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];
    let at = forms
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(told, form).ok())?;
    Some((words, at.and_utc()))
}

/// Returns a line as markup, in which what stands in backticks is code, and times are told as all others are.
pub(super) fn line_of(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let parts: Vec<&str> = text.split('`').collect();
    let last = parts.len() - 1;
    let mut shown = String::new();
    for (number, part) in parts.into_iter().enumerate() {
        match (number % 2, number == last) {
            (0, _) => shown.push_str(&with_times(part)),
            // One that is not closed stands for itself.
            (_, true) => shown.extend(["`", &escape(part)]),
            (_, false) => shown.extend(["<code>", &escape(part), "</code>"]),
        }
    }
    shown
}

/// Returns the class of a line of a difference.
pub(super) fn line(text: &str) -> &'static str {
    match text.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "file",
        [b'+', ..] => "added",
        [b'-', ..] => "removed",
        [b'@', ..] => "place",
        _ => "same",
    }
}

/// Returns a whole page in which what a terminal would obey, what turns letters round and what is invisible is shown.
pub(super) fn visible(mut page: String) -> String {
    // The end of a line as another system writes it.
    if page.contains('\r') {
        page = page.replace("\r\n", "\n");
    }
    if matches!(terminal::visible(&page), std::borrow::Cow::Borrowed(_)) {
        return page;
    }
    let mut shown = String::with_capacity(page.len());
    let mut buffer = [0; 4];
    for letter in page.chars() {
        let letter = &*letter.encode_utf8(&mut buffer);
        match terminal::visible(letter) {
            std::borrow::Cow::Borrowed(letter) => shown.push_str(letter),
            // The name of a letter stands in angle brackets, which are no markup.
            std::borrow::Cow::Owned(named) => {
                shown.push_str(&named.replace('<', "&lt;").replace('>', "&gt;"));
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_lie_are_shown_and_make_no_markup() {
        let page = "<p>a\u{1b}[31m \u{202e}b</p>\r\n";
        assert_eq!(
            visible(page.to_owned()),
            "<p>a\u{241b}[31m &lt;U+202E&gt;b</p>\n"
        );
    }

    #[test]
    fn code_in_a_line_is_code_and_the_rest_is_text() {
        for (text, shown) in [
            ("run `a <b>` & go", "run <code>a &lt;b&gt;</code> &amp; go"),
            ("one `not closed", "one `not closed"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(line_of(text), shown);
        }
    }

    #[test]
    fn times_in_a_text_are_marked_and_nothing_else_is() {
        let marked = "<time datetime=\"2026-03-01T08:00:07Z\">2026-03-01 08:00 UTC</time>";
        for (text, shown) in [
            ("2026-03-01 08:00:07 UTC", marked.to_owned()),
            (
                "<b> since 2026-03-01 08:00:07 UTC, & on",
                format!("&lt;b&gt; since {marked}, &amp; on"),
            ),
            ("at 08:00 UTC", "at 08:00 UTC".to_owned()),
            ("é 8 UTC", "é 8 UTC".to_owned()),
            (" UTC", " UTC".to_owned()),
        ] {
            assert_eq!(with_times(text), shown);
        }
        let code = "`2026-03-01 08:00 UTC`";
        assert_eq!(line_of(code), "<code>2026-03-01 08:00 UTC</code>");
    }

    #[test]
    fn durations_say_what_matters() {
        for (milliseconds, told) in [
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min 0 s"),
            (3_600_000, "1 h 0 min"),
        ] {
            assert_eq!(duration(milliseconds), told);
        }
    }
}
