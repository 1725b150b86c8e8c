//! Writes a secret down in every form in which it may turn up.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Anything shorter is a word that texts may well hold.
const SHORTEST: usize = 8;
/// Letters alone are a word until there are so many: who struck out `postgres` would break what names files.
const SHORTEST_OF_LETTERS: usize = 16;

/// How the lines begin between which a key stands.
const BEGIN: &str = "-----BEGIN";
const END: &str = "-----END";

/// Returns every form in which `secret` may be written; none where it cannot be told from other texts.
pub(super) fn of(secret: &str) -> Vec<String> {
    let mut forms = written(secret);
    forms.extend(lines_of(secret).flat_map(written));
    // The password of an address is encoded where it stands, and sent as it is.
    if let Some(decoded) = percent_decoded(secret) {
        forms.extend(written(&decoded));
    }
    forms
}

/// Returns the lines of each key in `secret` that has several: each stands by itself where lines are numbered, compared or
/// cut. Many settings write such a key in one line, with `\n` for what ends the others. What stands around a key, as the
/// other fields of a JSON object do, is nothing that only a secret has.
fn lines_of(secret: &str) -> impl Iterator<Item = &str> {
    let keys = secret.split(BEGIN).skip(1);
    let keys = keys.filter_map(|rest| Some(rest.split_once(END)?.0));
    // The first line is the rest of the one that the key begins with.
    let lines = keys.flat_map(|key| key.split('\n').flat_map(|line| line.split("\\n")).skip(1));
    let lines = lines.map(str::trim);
    lines.filter(|line| line.len() >= SHORTEST_OF_LETTERS)
}

fn written(secret: &str) -> Vec<String> {
    if secret.len() < SHORTEST || is_word(secret) {
        return Vec::new();
    }
    let mut forms = vec![secret.to_owned()];
    for upper in [true, false] {
        forms.push(percent_encoded(secret, upper));
    }
    forms.push(as_json(secret));
    for before in 0..3 {
        forms.extend(base64_inside(secret, before));
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// Says that people write texts with it in them.
fn is_word(secret: &str) -> bool {
    let rest = secret.get(1..).unwrap_or_default();
    let has_one_case = !rest.contains(char::is_lowercase) || !rest.contains(char::is_uppercase);
    let is_letter = |letter: char| letter.is_alphabetic() || "-_. ".contains(letter);
    secret.len() < SHORTEST_OF_LETTERS && has_one_case && secret.chars().all(is_letter)
}

fn as_json(secret: &str) -> String {
    let pairs = [
        ("\\", "\\\\"),
        ("\"", "\\\""),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\t", "\\t"),
    ];
    let escape = |text: String, (plain, escaped): &(&str, &str)| text.replace(plain, escaped);
    pairs.iter().fold(secret.to_owned(), escape)
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

/// Reads what is percent-encoded; none where nothing is.
fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    let decoded = String::from_utf8(bytes).ok()?;
    (decoded != text).then_some(decoded)
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
    use super::super::{STRUCK, SecretSet, finder, struck};
    use super::*;
    use std::borrow::Cow;

    const SECRET: &str = "sk-ant/Canary+42\"x?";

    fn known(secret: &str) -> SecretSet {
        let forms = of(secret);
        let finder = finder(&forms).unwrap();
        SecretSet { forms, finder }
    }

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let known = known(SECRET);
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
    fn what_an_address_encodes_is_found_as_it_is_and_a_key_of_several_lines_in_json() {
        for (secret, text) in [
            ("p%40ss%2Fword-7", "the password p@ss/word-7 it is"),
            (
                "-----BEGIN\nabc123\n-----END",
                "{\"k\":\"-----BEGIN\\nabc123\\n-----END\"}",
            ),
        ] {
            assert!(struck(text, &known(secret)).contains(STRUCK), "{text}");
        }
        assert_eq!(percent_decoded("100%"), None);
        assert_eq!(percent_decoded("plain"), None);
    }

    #[test]
    fn each_line_of_a_key_is_found_by_itself_and_its_frame_is_not() {
        let lines = [
            "-----BEGIN PRIVATE KEY-----",
            "MIIEvQIBADANBgkqhkiG9w0B",
            "AQEFAASCBKcwggSjAgEAAoIB",
            "tail",
            "-----END PRIVATE KEY-----",
        ];
        for key in [lines.join("\n"), lines.join("\r\n"), lines.join("\\n")] {
            let known = known(&key);
            let numbered = format!("2: {}\n3: {}", lines[1], lines[2]);
            assert_eq!(struck(&numbered, &known), "2: [secret]\n3: [secret]");
            let difference = format!("+{}\n-{}\n", lines[1], lines[2]);
            assert_eq!(struck(&difference, &known), "+[secret]\n-[secret]\n");
            for other in [lines[0], lines[3], lines[4]] {
                assert_eq!(struck(other, &known), other);
            }
        }
    }

    #[test]
    fn of_a_key_in_json_the_lines_count_and_its_other_fields_do_not() {
        let (first, second) = ("MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB");
        let fields = [
            "\"type\": \"service_account\",",
            "\"auth_uri\": \"https://accounts.example/o/oauth2/auth\"",
        ];
        let key = format!(
            "{{\n  {}\n  \"private_key\": \"-----BEGIN PRIVATE KEY-----\\n{first}\\n{second}\\n-----END PRIVATE KEY-----\\n\",\n  {}\n}}",
            fields[0], fields[1]
        );
        let known = known(&key);
        for line in [first, second] {
            assert_eq!(struck(line, &known), STRUCK);
        }
        for line in fields {
            assert_eq!(struck(line, &known), line);
        }
        // Several lines alone are no key.
        let lines = "the first line of a note\nand another one of it";
        assert_eq!(of(lines).len(), written(lines).len());
    }

    #[test]
    fn other_texts_stay_and_words_are_no_secrets() {
        let known = known(SECRET);
        assert!(matches!(struck("a canary sings", &known), Cow::Borrowed(_)));
        for word in ["any", "postgres", "Password", "write-all", "my_user.name"] {
            assert!(of(word).is_empty(), "{word}");
        }
        for secret in ["hunter2-x", "aBcDeFgHi", "correcthorsebatterystaple"] {
            assert!(!of(secret).is_empty(), "{secret}");
        }
    }
}
