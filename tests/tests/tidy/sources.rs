//! What must not stand in a source file, and what must.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

/// Macros that promise work instead of doing it.
const PROMISES: [&str; 2] = ["todo", "unimplemented"];

/// A crate root that does not open with its documentation.
pub(crate) fn without_crate_doc(path: &str, text: &str) -> Vec<String> {
    let is_root = path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
    let missing = (is_root && !text.starts_with("//!")).then(|| {
        format!("`{path}` must open with `//!`: what the crate is, is not, and how to add one more")
    });
    missing.into_iter().collect()
}

/// A module in the old place.
pub(crate) fn called_mod(path: &str) -> Vec<String> {
    let old = path
        .strip_suffix("/mod.rs")
        .map(|module| format!("`{path}` must be `{module}.rs`, or `{module}/main.rs` for a test"));
    old.into_iter().collect()
}

/// Macros that stand for missing work, and tests that do not run.
pub(crate) fn unfinished(path: &str, text: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    find_unfinished(tokens(path, text)?, &mut found);
    Ok(found
        .into_iter()
        .map(|what| format!("`{path}` has {what}: finish it or leave it out"))
        .collect())
}

fn find_unfinished(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (position, token) in tokens.iter().enumerate() {
        let next = tokens.get(position + 1);
        match (token, next) {
            (TokenTree::Ident(name), Some(TokenTree::Punct(mark)))
                if mark.as_char() == '!' && PROMISES.iter().any(|promise| name == promise) =>
            {
                found.push(format!("`{name}!`"));
            }
            (TokenTree::Punct(mark), Some(TokenTree::Group(attribute)))
                if mark.as_char() == '#' && is_ignore(attribute.stream()) =>
            {
                found.push("an ignored test".to_owned());
            }
            _ => {}
        }
        if let TokenTree::Group(group) = token {
            find_unfinished(group.stream(), found);
        }
    }
}

/// Whether an attribute ignores a test, under a condition or not.
fn is_ignore(attribute: TokenStream) -> bool {
    let mut names = attribute.into_iter();
    match names.next() {
        Some(TokenTree::Ident(name)) if name == "ignore" => true,
        Some(TokenTree::Ident(name)) if name == "cfg_attr" => {
            let mut inner = BTreeSet::new();
            collect_identifiers(names.collect(), &mut inner);
            inner.contains("ignore")
        }
        _ => false,
    }
}

/// All identifiers of a file, those inside macro calls included; comments and strings are none.
pub(crate) fn identifiers(path: &str, text: &str) -> Result<BTreeSet<String>> {
    let mut identifiers = BTreeSet::new();
    collect_identifiers(tokens(path, text)?, &mut identifiers);
    Ok(identifiers)
}

fn collect_identifiers(tokens: TokenStream, identifiers: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(identifier) => {
                identifiers.insert(identifier.to_string());
            }
            TokenTree::Group(group) => collect_identifiers(group.stream(), identifiers),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// What a handler of the build agent leaves to its workers: git, the gate and the attempts that run.
const LATER: [&str; 4] = ["clone", "gate", "land", "cancel"];

/// Calls of a handler of the build agent that are not for it: its delivery stays open meanwhile, and its commit may fail.
pub(crate) fn slow_handlers(path: &str, text: &str) -> Result<Vec<String>> {
    if !path.starts_with("agents/builder/src/act/") {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    find_members(tokens(path, text)?, &mut found);
    Ok(found
        .into_iter()
        .map(|what| {
            format!("`{path}` calls {what}: note what is wanted, and let the scheduler do it")
        })
        .collect())
}

/// Finds `shared.clone.…`, `shared.gate.…`, `signals.cancel(…)` and `land::land(…)`.
fn find_members(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let name = |token: Option<&TokenTree>| match token {
        Some(TokenTree::Ident(name)) => Some(name.to_string()),
        _ => None,
    };
    for (position, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            find_members(group.stream(), found);
        }
        let owner = name(Some(token)).unwrap_or_default();
        let gap = if owner == "land" { 3 } else { 2 };
        let member = name(tokens.get(position + gap)).unwrap_or_default();
        let is_meant = matches!(owner.as_str(), "shared" | "signals" | "land");
        if is_meant && LATER.contains(&member.as_str()) {
            found.push(format!("`{owner}` for `{member}`"));
        }
    }
}

fn tokens(path: &str, text: &str) -> Result<TokenStream> {
    text.parse()
        .map_err(|error| anyhow!("cannot parse `{path}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_that_does_the_work_itself_is_found() -> Result<()> {
        let handler = "agents/builder/src/act/answers.rs";
        let slow = "async fn merge() { if shared.clone.fetch().await { land::land(&shared.gate).await; } shared.signals.cancel(1) }";
        assert_eq!(slow_handlers(handler, slow)?.len(), 4);
        assert_eq!(
            slow_handlers("agents/builder/src/scheduler/branch.rs", slow)?.len(),
            0
        );
        let swift =
            "async fn merge() { let all = row.clone(); land::disown(all); changes.put(&wish); }";
        assert_eq!(slow_handlers(handler, swift)?.len(), 0);
        Ok(())
    }

    #[test]
    fn a_crate_without_documentation_is_found() {
        assert_eq!(
            without_crate_doc("bus/src/lib.rs", "//! Delivers.\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            without_crate_doc("bus/src/relay.rs", "mod x;\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            without_crate_doc("bus/src/lib.rs", "mod x;\n//! Late.\n").len(),
            1
        );
        assert_eq!(
            without_crate_doc("cli/src/main.rs", "fn main() {}\n").len(),
            1
        );
    }

    #[test]
    fn a_module_in_the_old_place_is_found() {
        assert_eq!(called_mod("bus/src/relay.rs"), Vec::<String>::new());
        assert_eq!(called_mod("bus/src/relay/mod.rs").len(), 1);
    }

    #[test]
    fn missing_work_and_ignored_tests_are_found() {
        let cases = [
            ("fn f() { todo!() }", 1),
            ("fn f() { unimplemented!(\"later\") }", 1),
            ("fn f() { wrap!(if x { todo!() }) }", 1),
            ("#[test] #[ignore] fn f() {}", 1),
            ("#[ignore = \"slow\"] fn f() {}", 1),
            ("#[cfg_attr(windows, ignore)] fn f() {}", 1),
            ("// todo!()\nconst TODO: &str = \"todo!() #[ignore]\";", 0),
            ("#[derive(Debug)] struct S { todo: bool }", 0),
            ("fn f(ignore: bool) -> bool { ignore }", 0),
        ];
        for (text, expected) in cases {
            let found = unfinished("bus/src/lib.rs", text).unwrap();
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        }
    }
}
