//! Knows the secrets of this process, and strikes them out of whatever leaves it.
//!
//! A secret is one wherever it turns up, so that they are kept in one place for the whole process: each way out (log,
//! event, row, transcript, error, command output, commit message) asks here, and none has to know which there are.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What stands in the place of a secret.
pub const STRUCK: &str = "[secret]";
/// Anything shorter is a word that texts may well hold.
const SHORTEST: usize = 8;

/// The secrets so far, in every form, and what finds them.
struct Known {
    forms: Vec<String>,
    finder: AhoCorasick,
}

static KNOWN: RwLock<Option<Arc<Known>>> = RwLock::new(None);

/// Keeps `secrets` from leaving this process from now on; very short ones cannot be told from words.
pub fn keep<Secret: AsRef<str>>(secrets: impl IntoIterator<Item = Secret>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let mut forms = known.as_ref().map(|known| known.forms.clone());
    let forms = forms.get_or_insert_default();
    for secret in secrets {
        forms.extend(forms_of(secret.as_ref().trim()));
    }
    forms.sort_unstable();
    forms.dedup();
    if let Some(finder) = finder(forms) {
        let forms = std::mem::take(forms);
        *known = Some(Arc::new(Known { forms, finder }));
    }
}

/// Strikes every known secret out of `text`: as it is, and as JSON, base64 or an address writes it.
pub fn strike(text: &str) -> Cow<'_, str> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner).clone();
    match known {
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

/// Hides the memory and the environment of this process from others of the same user.
pub fn hide_process() -> std::io::Result<()> {
    Ok(nix::sys::prctl::set_dumpable(false)?)
}

fn struck<'a>(text: &'a str, known: &Known) -> Cow<'a, str> {
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

/// Returns every form in which `secret` may be written.
fn forms_of(secret: &str) -> Vec<String> {
    if secret.len() < SHORTEST {
        return Vec::new();
    }
    let mut forms = vec![secret.to_owned()];
    for upper in [true, false] {
        forms.push(percent_encoded(secret, upper));
    }
    // As JSON writes it.
    forms.push(secret.replace('\\', "\\\\").replace('"', "\\\""));
    for before in 0..3 {
        forms.extend(base64_inside(secret, before));
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

fn percent_encoded(secret: &str, upper: bool) -> String {
    let encode = |byte: u8| match byte {
        _ if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => {
            char::from(byte).to_string()
        }
        _ if upper => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    };
    secret.bytes().map(encode).collect()
}

/// Returns the letters that only `secret` decides where base64 writes it after so many other bytes, in both alphabets.
fn base64_inside(secret: &str, before: usize) -> [String; 2] {
    let bytes = [&vec![0; before], secret.as_bytes()].concat();
    // The first letters hold bits of what stands before, the last one may hold bits of what follows.
    let begin = (before * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    let inside = |text: String| text.get(begin..end).unwrap_or_default().to_owned();
    [
        inside(STANDARD_NO_PAD.encode(&bytes)),
        inside(URL_SAFE_NO_PAD.encode(&bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-ant/Canary+42\"x?";

    fn known() -> Known {
        let forms = forms_of(SECRET);
        let finder = finder(&forms).unwrap();
        Known { forms, finder }
    }

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let known = known();
        let mut texts = vec![
            format!("KEY={SECRET}\n"),
            "{\"key\":\"sk-ant/Canary+42\\\"x?\"}".to_owned(),
            format!("https://h/?key={}", percent_encoded(SECRET, true)),
            format!("https://h/?key={}", percent_encoded(SECRET, false)),
        ];
        for before in ["", "a", "ab", "abc", "key: abcd"] {
            for after in ["", "z", "yz", " and more"] {
                let whole = format!("{before}{SECRET}{after}");
                texts.push(STANDARD_NO_PAD.encode(&whole));
                texts.push(URL_SAFE_NO_PAD.encode(&whole));
            }
        }
        for text in texts {
            let struck = struck(&text, &known);
            assert!(struck.contains(STRUCK), "{text} became {struck}");
            for piece in ["Canary", "Q2FuYXJ5", "NhbmFye"] {
                assert!(!struck.contains(piece), "{text} became {struck}");
            }
        }
    }

    #[test]
    fn other_texts_stay_and_short_words_are_no_secrets() {
        let known = known();
        assert!(matches!(struck("a canary sings", &known), Cow::Borrowed(_)));
        assert!(forms_of("any").is_empty());
    }

    #[test]
    fn what_is_kept_is_struck_out_of_every_text_of_the_process() {
        keep(["first-canary-1", "second-canary-2", "short"]);
        keep(["third-canary-3"]);
        let mut text = "first-canary-1 second-canary-2 third-canary-3 short".to_owned();
        strike_out(&mut text);
        assert_eq!(text, "[secret] [secret] [secret] short");
    }

    #[test]
    fn a_hidden_process_is_no_longer_dumpable() {
        hide_process().unwrap();
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
    }
}
