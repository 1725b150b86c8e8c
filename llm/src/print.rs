//! Names what a request asks by hashes, without what differs from run to run: ids, times, places on this machine.

use std::borrow::Cow;

use ropewalk_runtime::secrets;
use ropewalk_schemas::model_call::RequestPrint;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::message::{Block, Message, Role};
use crate::request::ModelRequest;

/// So many bytes of a hash are kept.
const KEPT_BYTES: usize = 8;
/// So much of what differs is shown.
const SHOWN_CHARACTERS: usize = 200;
/// Stands for an id.
const ID: &str = "<id>";
/// Stands for a time.
const TIME: &str = "<time>";
/// Ends an amount of time that stands in two words.
const UNITS: [&str; 9] = [
    "ms",
    "s",
    "sec",
    "secs",
    "seconds",
    "second",
    "milliseconds",
    "minutes",
    "minute",
];

/// Returns what names `request`; secrets, ids, times and where a file lies on this machine leave no trace in it, nor does
/// the name of the model.
pub fn print(request: &ModelRequest) -> RequestPrint {
    let said = &request.messages;
    let replied = said
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    let (before, since) = said.split_at(replied.map_or(0, |last| last + 1));
    let mut whole = Sha256::new();
    for block in before.iter().flat_map(|message| &message.blocks) {
        whole.update(piece(block));
        whole.update([0]);
    }
    let settings = json!([
        request.tool_choice,
        request.max_output_tokens,
        request.response_schema,
        request.effort,
    ]);
    RequestPrint {
        system: hash(&plain(&request.system)),
        tools: hash(&json!(request.tools).to_string()),
        settings: hash(&settings.to_string()),
        before: short(whole),
        since: pieces(since).map(|block| hash(&piece(block))).collect(),
    }
}

/// Is the first thing of a request that is not as it was known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The system prompt.
    System,
    /// The tools on offer.
    Tools,
    /// All else that is set.
    Settings,
    /// What was said up to the last reply of the model.
    Before,
    /// How many pieces were told since.
    Pieces {
        /// As it was known.
        had: usize,
        /// As it is.
        has: usize,
    },
    /// A piece that was told since.
    Piece {
        /// What it is.
        name: String,
        /// How it begins now.
        text: String,
    },
}

impl Difference {
    /// Says whether it lies in what was told, which is told as things stand whenever work is taken up again, rather than in
    /// what stays the same.
    pub fn is_of_what_was_told(&self) -> bool {
        match self {
            Self::System | Self::Tools | Self::Settings => false,
            Self::Before | Self::Pieces { .. } | Self::Piece { .. } => true,
        }
    }

    /// Names it without a word of what was said.
    pub fn named(&self) -> String {
        match self {
            Self::System => "the system prompt differs".to_owned(),
            Self::Tools => "the tools on offer differ".to_owned(),
            Self::Settings => "the settings differ".to_owned(),
            Self::Before => "what was said before differs".to_owned(),
            Self::Pieces { had, has } => {
                format!("{has} pieces were told since the last reply, and there were {had}")
            }
            Self::Piece { name, .. } => format!("{name} differs"),
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.named())?;
        match self {
            Self::Piece { text, .. } => write!(formatter, ": {text}"),
            _ => Ok(()),
        }
    }
}

/// Says what of `request` is not as `known` has it; none where it asks the same.
pub fn difference(known: &RequestPrint, request: &ModelRequest) -> Option<Difference> {
    let now = print(request);
    let parts = [
        (known.system == now.system, Difference::System),
        (known.tools == now.tools, Difference::Tools),
        (known.settings == now.settings, Difference::Settings),
        (known.before == now.before, Difference::Before),
    ];
    if let Some((_, what)) = parts.into_iter().find(|(is_same, _)| !is_same) {
        return Some(what);
    }
    let (had, has) = (known.since.len(), now.since.len());
    let at = (0..had.max(has)).find(|at| known.since.get(*at) != now.since.get(*at))?;
    let replied = request
        .messages
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    let since = &request.messages[replied.map_or(0, |last| last + 1)..];
    let Some(block) = pieces(since).nth(at) else {
        return Some(Difference::Pieces { had, has });
    };
    Some(Difference::Piece {
        name: named(block, request),
        text: shown(block),
    })
}

fn pieces(messages: &[Message]) -> impl Iterator<Item = &Block> {
    messages.iter().flat_map(|message| &message.blocks)
}

/// Returns what a piece of a conversation says. Ids pair calls with results, which their order does as well.
fn piece(block: &Block) -> String {
    match block {
        Block::Text(text) => plain(text),
        Block::ToolUse(call) => format!("{} {}", call.name, plain(&call.input.to_string())),
        Block::ToolResult {
            content,
            is_error,
            images,
            ..
        } => {
            let images = images.iter().map(|image| format!(" {}", hash(&image.data)));
            format!(
                "{is_error} {}{}",
                plain(content),
                images.collect::<String>()
            )
        }
        // What only its provider reads is never the same twice.
        Block::Opaque { provider, .. } => provider.clone(),
    }
}

fn named(block: &Block, request: &ModelRequest) -> String {
    let Block::ToolResult { tool_use_id, .. } = block else {
        return "what was told".to_owned();
    };
    let mut all = pieces(&request.messages);
    let tool = all.find_map(|block| match block {
        Block::ToolUse(call) if call.id == *tool_use_id => Some(call.name.as_str()),
        _ => None,
    });
    format!("the result of `{}`", tool.unwrap_or("a tool"))
}

fn shown(block: &Block) -> String {
    let text = match block {
        Block::Text(text) | Block::ToolResult { content: text, .. } => text.as_str(),
        _ => "",
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(SHOWN_CHARACTERS).collect()
}

fn hash(text: &str) -> String {
    short(Sha256::new_with_prefix(text))
}

fn short(hash: Sha256) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in hash.finalize().iter().take(KEPT_BYTES) {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}

/// Strikes out of a text what differs from run to run: secrets, ids, times, and where a file lies on this machine.
pub fn plain(text: &str) -> String {
    let text = secrets::strike(text);
    let mut plain = String::with_capacity(text.len());
    // Where a number began that may be an amount of time, and whether a day was just named.
    let (mut number, mut day) = (None, false);
    let mut rest = &*text;
    while let Some(first) = rest.chars().next() {
        if !is_of_word(first) {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
            (number, day) = (number.filter(|_| first == ' '), day && first == ' ');
            continue;
        }
        let end = rest.find(|letter| !is_of_word(letter));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        let core = word.trim_end_matches(['.', ':']);
        if let Some(began) = number.filter(|_| UNITS.contains(&core)) {
            plain.truncate(began);
            plain.push_str(TIME);
        } else {
            let began = plain.len();
            number = is_number(core).then_some(began);
            let struck = if day && is_time_to_the_minute(core) {
                Cow::Borrowed(TIME)
            } else {
                of_word(core)
            };
            plain.push_str(&struck);
        }
        day = is_day(core);
        plain.push_str(&word[core.len()..]);
    }
    plain
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_./:+~".contains(letter)
}

/// Returns a word without what differs from run to run. Nearly every word stays as it is, so that only one that does not costs
/// an allocation: all that was ever said goes through here at every turn.
fn of_word(word: &str) -> Cow<'_, str> {
    if word.contains("://") {
        return Cow::Borrowed(word);
    }
    if let Some(place) = word.strip_prefix('/')
        && let Some((_, name)) = place.rsplit_once('/')
    {
        return Cow::Owned(format!("/{}", of_word(name)));
    }
    if word.split('/').all(|part| stand_in(part).is_none()) {
        return Cow::Borrowed(word);
    }
    let parts: Vec<&str> = word
        .split('/')
        .map(|part| stand_in(part).unwrap_or(part))
        .collect();
    Cow::Owned(parts.join("/"))
}

/// Returns what stands for an id or a time; none for any other text.
fn stand_in(text: &str) -> Option<&'static str> {
    if is_id(text) {
        Some(ID)
    } else if is_day(text) || is_time_of_day(text) || is_amount_of_time(text) {
        Some(TIME)
    } else {
        None
    }
}

/// Says that a text is a UUID or the id of a git object.
fn is_id(text: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.len() {
        36 => {
            let groups = text.split('-').map(str::len);
            groups.eq([8, 4, 4, 4, 12]) && text.split('-').all(is_hex)
        }
        40 | 64 => is_hex(text),
        _ => false,
    }
}

/// Says that a text is a day, or begins with one and goes on with a time: `2026-03-01T08:00:00Z`.
fn is_day(text: &str) -> bool {
    let Some((day, rest)) = text.as_bytes().split_at_checked(10) else {
        return false;
    };
    let mut shape = day.iter().zip(b"0000-00-00");
    let fits = shape.all(|(byte, place)| match place {
        b'0' => byte.is_ascii_digit(),
        _ => byte == place,
    });
    fits && matches!(rest.first(), None | Some(b'T'))
}

/// Says that a text is a time of the day to the second.
fn is_time_of_day(text: &str) -> bool {
    let mut parts = text.trim_end_matches('Z').split(':');
    let [hour, minute, second, more] = std::array::from_fn(|_| parts.next());
    let (Some(hour), Some(minute), Some(second), None) = (hour, minute, second, more) else {
        return false;
    };
    hour.len() == 2
        && minute.len() == 2
        && second.len() >= 2
        && [hour, minute, second].into_iter().all(is_number)
}

/// Says that a text is a time of the day to the minute, which without a day before it may be anything.
fn is_time_to_the_minute(text: &str) -> bool {
    text.len() == 5 && is_time_of_day(&format!("{text}:00"))
}

/// Says that a text is an amount of time, such as `0.03s` or `1m02s`.
fn is_amount_of_time(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let Some(digits) = digits.filter(|digits| *digits > 0) else {
            return false;
        };
        let unit = ["ms", "us", "ns", "min", "s", "m", "h"]
            .into_iter()
            .find(|unit| rest[digits..].starts_with(unit));
        let Some(unit) = unit else { return false };
        rest = &rest[digits + unit.len()..];
    }
    !text.is_empty()
}

fn is_number(text: &str) -> bool {
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    text.starts_with(|first: char| first.is_ascii_digit()) && text.chars().all(is_of_number)
}

#[cfg(test)]
mod tests;
