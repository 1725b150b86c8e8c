//! Knows the secrets of this process, and strikes them out of whatever leaves it.
//!
//! A secret is one wherever it turns up, so that they are kept in one place for the whole process: each way out (log,
//! event, row, transcript, error, command output, commit message) asks here, and none has to know which there are.

mod forms;
mod spoken;

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

pub use spoken::SecretFilter;

/// What stands in the place of a secret.
pub const STRUCK: &str = "[secret]";
/// So much of a secret at the end of a text that was cut there is more than chance.
const TELLING: usize = 4;

/// The secrets so far, in every form, and what finds them.
struct SecretSet {
    forms: Vec<String>,
    finder: AhoCorasick,
}

static KNOWN: RwLock<Option<Arc<SecretSet>>> = RwLock::new(None);

/// Keeps `secrets` from leaving this process from now on; one that is short or a word cannot be told from other texts.
pub fn keep<Secret: AsRef<str>>(secrets: impl IntoIterator<Item = Secret>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let mut forms = known.as_ref().map(|known| known.forms.clone());
    let forms = forms.get_or_insert_default();
    for secret in secrets {
        forms.extend(forms::of(secret.as_ref().trim()));
    }
    forms.sort_unstable();
    forms.dedup();
    if let Some(finder) = finder(forms) {
        let forms = std::mem::take(forms);
        *known = Some(Arc::new(SecretSet { forms, finder }));
    }
}

/// Strikes every known secret out of `text`: as it is, and as JSON, base64 or an address writes it.
pub fn strike(text: &str) -> Cow<'_, str> {
    match known() {
        Some(known) => struck(text, &known),
        None => Cow::Borrowed(text),
    }
}

/// Strikes every known secret out of a text that is kept.
pub fn strike_out(text: &mut String) {
    if let Cow::Owned(struck) = strike(text) {
        *text = struck;
    }
}

/// Strikes every known secret out of every text of a value.
pub fn strike_json(value: &mut Value) {
    match value {
        Value::String(text) => strike_out(text),
        Value::Array(items) => items.iter_mut().for_each(strike_json),
        Value::Object(fields) => {
            if fields.keys().any(|name| is_in(name.as_bytes())) {
                let named = std::mem::take(fields).into_iter();
                fields.extend(named.map(|(name, value)| (strike(&name).into_owned(), value)));
            }
            fields.values_mut().for_each(strike_json);
        }
        _ => {}
    }
}

/// Strikes out what a cut left of a secret: its beginning at the end of `before`, its end at the beginning of `after`.
pub fn strike_cut(before: &mut String, after: &mut String) {
    let Some(known) = known() else {
        return;
    };
    if let Some(part) = known.begun_at_end(before) {
        before.truncate(before.len() - part);
        before.push_str(STRUCK);
    }
    if let Some(part) = known.ended_at_start(after) {
        after.replace_range(..part, STRUCK);
    }
}

/// Says that `bytes` hold a secret.
pub fn is_in(bytes: &[u8]) -> bool {
    known().is_some_and(|known| known.finder.is_match(bytes))
}

/// Says that there is anything to look for.
pub fn are_known() -> bool {
    known().is_some()
}

/// Hides the memory and the environment of this process from others of the same user.
pub fn hide_process() -> std::io::Result<()> {
    Ok(nix::sys::prctl::set_dumpable(false)?)
}

fn known() -> Option<Arc<SecretSet>> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).clone()
}

impl SecretSet {
    /// Returns how many bytes at the end of `text` may be the beginning of a secret.
    fn begun_at_end(&self, text: &str) -> Option<usize> {
        let ends = |form: &String| {
            let parts = (TELLING..form.len()).rev();
            let mut parts = parts.filter(|part| form.is_char_boundary(*part));
            parts.find(|part| text.ends_with(&form[..*part]))
        };
        self.forms.iter().filter_map(ends).max()
    }

    /// Returns how many bytes at the beginning of `text` may be the end of a secret.
    fn ended_at_start(&self, text: &str) -> Option<usize> {
        let starts = |form: &String| {
            let parts = (1..=form.len().saturating_sub(TELLING))
                .filter(|from| form.is_char_boundary(*from));
            let mut parts = parts.map(|from| &form[from..]);
            parts.find(|part| text.starts_with(part)).map(str::len)
        };
        self.forms.iter().filter_map(starts).max()
    }
}

fn struck<'a>(text: &'a str, known: &SecretSet) -> Cow<'a, str> {
    if !known.finder.is_match(text) {
        return Cow::Borrowed(text);
    }
    let with = vec![STRUCK; known.forms.len()];
    Cow::Owned(known.finder.replace_all(text, &with))
}

fn finder(forms: &[String]) -> Option<AhoCorasick> {
    if forms.is_empty() {
        return None;
    }
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest);
    builder.build(forms).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_struck_out_of_every_text_of_the_process() {
        keep(["first-canary-1", "second-canary-2", "short", "postgres"]);
        keep(["third-canary-3"]);
        let mut text = "first-canary-1 second-canary-2 third-canary-3 short postgres".to_owned();
        strike_out(&mut text);
        assert_eq!(text, "[secret] [secret] [secret] short postgres");
        let mut value = serde_json::json!({ "a first-canary-1": ["third-canary-3", 1] });
        strike_json(&mut value);
        assert_eq!(value, serde_json::json!({ "a [secret]": ["[secret]", 1] }));
        assert!(is_in(b"\xffthird-canary-3") && !is_in(b"third-canary"));
    }

    #[test]
    fn what_a_cut_left_of_a_secret_goes_too() {
        keep(["cut-in-the-middle-7"]);
        for (before, after, expected) in [
            ("x cut-in-the", "-middle-7 y", ["x [secret]", "[secret] y"]),
            ("x cut-in-the-middle-", "7 y", ["x [secret]", "7 y"]),
            ("x cut", "dle-7", ["x cut", "[secret]"]),
            ("", "", ["", ""]),
        ] {
            let (mut before, mut after) = (before.to_owned(), after.to_owned());
            strike_cut(&mut before, &mut after);
            assert_eq!([before, after], expected);
        }
    }

    #[test]
    fn a_hidden_process_is_no_longer_dumpable() {
        hide_process().unwrap();
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
    }
}
