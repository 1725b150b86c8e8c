//! Makes the template language in which prompts and questions are written.
//!
//! In a prompt, what is filled in is material: it stands between `<document>` and `</document>`, in a fence, or behind the mark
//! of a list. Nothing in it may end the place where it stands, so that is seen to here, for every value of every prompt.

use std::error::Error;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Output, State, UndefinedBehavior, Value, escape_formatter};

/// The tags between which a prompt shows what others wrote.
const TAG: &str = "document";
/// The shortest fence.
const FENCE: usize = 3;

/// Returns the language, with no template in it.
pub(crate) fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    // A missing value must be an error and not a hole in what a model or a person is told.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    Ok(environment)
}

/// Returns the language of prompts, with no template in it.
pub(crate) fn prompt_environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = environment()?;
    environment.set_formatter(write_material);
    environment.add_filter("fenced", fenced);
    Ok(environment)
}

/// Writes a value so that it ends no document and begins none.
fn write_material(
    output: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    match value.as_str() {
        Some(text) => Ok(output.write_str(&without_tags(text))?),
        None => escape_formatter(output, state, value),
    }
}

/// Writes the `<` of each tag of a document as `&lt;`, however its end is spelt.
fn without_tags(text: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        told.push_str(before);
        told.push_str(if is_tag(after) { "&lt;" } else { "<" });
        rest = after;
    }
    told.push_str(rest);
    told
}

/// Says whether a `<` with this behind it opens or closes a document. Code names types as in `Vec<Document>`, so what opens
/// one is told by its exact name.
fn is_tag(after: &str) -> bool {
    let name = after.trim_start_matches(|letter: char| {
        letter == '/' || letter.is_whitespace() || letter.is_control()
    });
    let Some((begins, behind)) = name.split_at_checked(TAG.len()) else {
        return false;
    };
    let goes_on = behind.starts_with(|letter: char| letter.is_alphanumeric());
    let closes = after[..after.len() - name.len()].contains('/');
    !goes_on && (begins == TAG || closes && begins.eq_ignore_ascii_case(TAG))
}

/// Puts a text into a fence that is longer than any in it.
pub fn fenced(text: &str, language: Option<&str>) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max();
    let fence = "`".repeat(FENCE.max(longest.unwrap_or_default() + 1));
    let language = language.unwrap_or_default();
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Returns `error` with its causes in one line, since an error inside an included file is a cause.
pub(crate) fn in_one_line(error: &minijinja::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.lines().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tag_of_a_document_is_left_and_nothing_else_is_changed() {
        let rows = [
            ("a </document> b", "a &lt;/document> b"),
            ("<document>", "&lt;document>"),
            ("</ DOCUMENT\n>", "&lt;/ DOCUMENT\n>"),
            ("< /\u{0}document", "&lt; /\u{0}document"),
            ("<</document>", "<&lt;/document>"),
            ("if a < b { Vec<Document> }", "if a < b { Vec<Document> }"),
            ("<documents>", "<documents>"),
            ("a <doc> é <b", "a <doc> é <b"),
            ("x<", "x<"),
        ];
        for (text, told) in rows {
            assert_eq!(without_tags(text), told, "{text}");
        }
    }

    #[test]
    fn a_fence_is_longer_than_every_fence_in_it() {
        let rows = [
            ("plain", None, "```\nplain\n```"),
            ("+ a", Some("diff"), "```diff\n+ a\n```"),
            ("a\n```\nb", None, "````\na\n```\nb\n````"),
            ("`````", None, "``````\n`````\n``````"),
        ];
        for (text, language, told) in rows {
            assert_eq!(fenced(text, language), told, "{text}");
        }
    }
}
