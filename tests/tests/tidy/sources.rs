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

/// The handlers of the build agent.
const HANDLERS: &str = "agents/builder/src/act";

/// Calls of a handler of the build agent that are not for it: its delivery stays open meanwhile, and its commit may fail.
pub(crate) fn slow_handlers(path: &str, text: &str) -> Result<Vec<String>> {
    let rest = path.strip_prefix(HANDLERS);
    if !rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/')) {
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

/// Whether a handler leaves `member` of `owner` to the workers: git, the gate, commands and slots, and the attempts that run, of which it
/// may only ask whether they do.
fn is_for_workers(owner: &str, member: &str) -> bool {
    match owner {
        "shared" => matches!(member, "clone" | "gate" | "runner" | "slots"),
        "signals" => member != "is_running",
        "land" => member == "land",
        "publish" => true,
        _ => false,
    }
}

/// Finds `shared.gate.…`, `signals.cancel(…)`, `land::land(…)` and their like.
fn find_members(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (position, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => find_members(group.stream(), found),
            TokenTree::Ident(owner) => {
                let owner = owner.to_string();
                let member = member(&tokens[position + 1..]);
                let member = member.filter(|member| is_for_workers(&owner, member));
                found.extend(member.map(|member| format!("`{member}` of `{owner}`")));
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The name that follows an owner, behind a full stop or two colons.
fn member(rest: &[TokenTree]) -> Option<String> {
    let mark = |at: usize| match rest.get(at) {
        Some(TokenTree::Punct(mark)) => Some(mark.as_char()),
        _ => None,
    };
    let name = match (mark(0), mark(1)) {
        (Some('.'), _) => rest.get(1),
        (Some(':'), Some(':')) => rest.get(2),
        _ => None,
    };
    match name {
        Some(TokenTree::Ident(name)) => Some(name.to_string()),
        _ => None,
    }
}

/// Where a ring is what a bell does, a library, or a key of earlier configurations.
const RINGS: [&str; 8] = [
    "cli/src/commands/up.rs",
    "cli/src/commands/up/notices.rs",
    "cli/src/output.rs",
    "cli/src/wiring/notices.rs",
    "config/default.toml",
    "config/src/settings/agents.rs",
    "config/src/settings/notices.rs",
    "runtime/src/http.rs",
];

/// What leads back to itself and is called a ring, in names, comments or texts: it is a cycle in sources, prompts, configurations and
/// documents. What was decided stays as it was written down.
pub(crate) fn rings(path: &str, text: &str) -> Vec<String> {
    let is_ring = |line: &str| {
        let mut words = line.split(|letter: char| !letter.is_ascii_alphabetic());
        words.any(has_ring)
    };
    let mut lines = text.lines().zip(1..).filter(|(line, _)| is_ring(line));
    let is_document = path.starts_with("docs/") && !path.starts_with("docs/adr/");
    let is_config = path.starts_with("config/") && !path.starts_with("config/tests/");
    if !path.contains("/src/") && !is_document && !is_config {
        return Vec::new();
    }
    if RINGS.contains(&path) {
        let is_idle = lines.next().is_none();
        return is_idle
            .then(|| format!("`{path}` rings no more: take it off the list"))
            .into_iter()
            .collect();
    }
    lines
        .map(|(_, number)| format!("`{path}`, line {number}: what leads back is a `cycle`"))
        .collect()
}

/// Whether a word is `ring` or a name that holds it as one of its words, as `RingOfWaits` and `waitRing` do.
fn has_ring(word: &str) -> bool {
    let letters = word.as_bytes();
    let begins = |at: &usize| {
        *at > 0 && letters[*at].is_ascii_uppercase() && letters[*at - 1].is_ascii_lowercase()
    };
    let mut begin = 0;
    let mut ends: Vec<usize> = (0..letters.len()).filter(begins).collect();
    ends.push(letters.len());
    ends.into_iter().any(|end| {
        let part = &word[begin..end];
        begin = end;
        part.eq_ignore_ascii_case("ring") || part.eq_ignore_ascii_case("rings")
    })
}

/// Where transitions of the build agent are made, and where what they bring becomes a change set.
const EFFECTS: [&str; 3] = [
    "agents/builder/src/effects.rs",
    "agents/builder/src/machine.rs",
    "agents/builder/src/machine/",
];

/// Uses of `apply` of a machine, which answers with effects, where nobody stores them; and what could hide one: all of a machine at
/// once, or a machine by another name.
pub(crate) fn lost_effects(path: &str, text: &str) -> Result<Vec<String>> {
    let stores = EFFECTS.iter().any(|known| path.starts_with(known));
    if !path.starts_with("agents/builder/src/") || stores {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    find_transitions(tokens(path, text)?, None, &mut found);
    Ok(found
        .into_iter()
        .map(|of| {
            format!("`{path}` takes `{of}`: let `Scene` store what it brings, or take `apply_alone` by its own name")
        })
        .collect())
}

/// Finds `task::apply` and `build::{…, apply}` outside of tests, `task::*` and `machine::task as …`; `within` is the module whose
/// names a group lists.
fn find_transitions(tokens: TokenStream, within: Option<&str>, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (position, token) in tokens.iter().enumerate() {
        let module = module_before(&tokens, position);
        match token {
            TokenTree::Group(group) if !is_of_tests(&tokens, position) => {
                find_transitions(group.stream(), module.as_deref(), found);
            }
            TokenTree::Ident(name) if name == "apply" => {
                let module = module.or_else(|| within.map(str::to_owned));
                let module = module.filter(|of| is_machine(of));
                found.extend(module.map(|of| format!("{of}::apply")));
            }
            TokenTree::Punct(mark) if mark.as_char() == '*' => {
                let module = module.or_else(|| within.map(str::to_owned));
                let module = module.filter(|of| is_machine(of));
                found.extend(module.map(|of| format!("{of}::*")));
            }
            TokenTree::Ident(name) if name == "as" => {
                let of = renamed(&tokens[..position], within);
                found.extend(of.map(|of| format!("machine::{of} as")));
            }
            _ => {}
        }
    }
}

fn is_machine(module: &str) -> bool {
    matches!(module, "task" | "build")
}

/// The machine that gets another name behind `before`: `machine::task`, or the `self` of a group of it.
fn renamed(before: &[TokenTree], within: Option<&str>) -> Option<String> {
    let position = before.len().checked_sub(1)?;
    let TokenTree::Ident(name) = before.get(position)? else {
        return None;
    };
    let name = name.to_string();
    let module = module_before(before, position).or_else(|| within.map(str::to_owned))?;
    match name.as_str() {
        "self" => is_machine(&module).then_some(module),
        _ => (module == "machine" && is_machine(&name)).then_some(name),
    }
}

/// The module that is named before a name or a group, with `::` between.
fn module_before(tokens: &[TokenTree], position: usize) -> Option<String> {
    let colon = tokens.get(position.checked_sub(1)?)?;
    let is_path = matches!(colon, TokenTree::Punct(mark) if mark.as_char() == ':');
    match tokens.get(position.checked_sub(3)?)? {
        TokenTree::Ident(module) if is_path => Some(module.to_string()),
        _ => None,
    }
}

fn is_of_tests(tokens: &[TokenTree], position: usize) -> bool {
    let before = position.checked_sub(1).and_then(|at| tokens.get(at));
    matches!(before, Some(TokenTree::Ident(name)) if name == "tests")
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
        for (body, expected) in [
            ("if shared.clone.fetch().await {}", 1),
            ("land::land(&shared.gate).await;", 2),
            (
                "shared.slots.take().await; shared.runner.run(line).await",
                2,
            ),
            ("publish::push(&build).await", 1),
            ("shared.signals.cancel(1)", 1),
            ("shared.signals.wake_loops(); signals.owe(build);", 2),
            ("if shared.signals.is_running(1) {}", 0),
            (
                "let all = row.clone(); land::disown(all); changes.put(&wish);",
                0,
            ),
            (
                "let (signals, land) = both; ask(Signs { signals: land })",
                0,
            ),
        ] {
            let text = format!("async fn merge() {{ {body} }}");
            for (path, expected) in [
                ("agents/builder/src/act.rs", expected),
                ("agents/builder/src/act/answers.rs", expected),
                ("agents/builder/src/scheduler/branch.rs", 0),
            ] {
                let found = slow_handlers(path, &text)?;
                assert_eq!(found.len(), expected, "{path}: {body}: {found:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn a_cycle_by_another_name_is_found() {
        let graph = "coordination/src/graph.rs";
        for (path, text, expected) in [
            (
                graph,
                "/// Rings of waits.\nfn ring() {}\nfn string() {}",
                2,
            ),
            (graph, "let a_ring_of_two = \"no ring\";", 1),
            (graph, "/// A cycle that comes during a merge.", 0),
            (graph, "struct RingOfWaits { waitRings: StringRing }", 1),
            (graph, "struct Wiring(StringRingleader);", 0),
            ("config/prompts/pm.md", "They wait in a ring.", 1),
            ("config/default.toml", "# whether `up` rings", 0),
            ("docs/faults.md", "A ring of waits.", 1),
            ("docs/adr/0007-some-waits-are-derived.md", "A ring.", 0),
            ("coordination/tests/cycles.rs", "fn ring() {}", 0),
            ("cli/src/output.rs", "pub(crate) fn ring(text: &str) {}", 0),
            ("cli/src/output.rs", "pub(crate) fn chime() {}", 1),
        ] {
            assert_eq!(rings(path, text).len(), expected, "{path}: {text}");
        }
    }

    #[test]
    fn a_transition_whose_effects_are_lost_is_found() -> Result<()> {
        for (text, expected) in [
            ("use crate::machine::task::{Input, Phase, apply};", 1),
            ("use super::machine::build::apply;", 1),
            ("use crate::machine::{build::{Input, apply}, task};", 1),
            (
                "fn f() { let (after, _) = build::apply(build, input, now)?; }",
                1,
            ),
            (
                "fn f() { retry!({ g(&machine::task::apply(task, input, now)?.0) }) }",
                1,
            ),
            ("use crate::machine::task as of_tasks;", 1),
            ("use crate::machine::{Effect, build as of_builds};", 1),
            ("use crate::machine::task::{self as of_tasks, Input};", 1),
            ("use crate::machine::build::{apply as moved};", 1),
            ("use crate::machine::task::*;", 1),
            ("use crate::machine::{build::*, task::{Input, *}};", 2),
            ("use crate::machine::{task, build};", 0),
            ("use crate::machine::task::{self, Input as Word};", 0),
            (
                "fn f(task: &u8, a: u8) -> u8 { *task * a + build as u8 }",
                0,
            ),
            ("use crate::machine::task::{Input, apply_alone};", 0),
            (
                "fn f(task: Task) { control::apply(task, input); apply(build) }",
                0,
            ),
            (
                "#[cfg(test)] mod tests { use crate::machine::task::apply; }",
                0,
            ),
        ] {
            let found = lost_effects("agents/builder/src/claim.rs", text)?;
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        }
        let stored = "fn f() { let (after, effects) = machine::task::apply(task, input, now)?; }";
        for path in [
            "agents/builder/src/effects.rs",
            "agents/builder/src/machine/build/apply.rs",
            "agents/builder/tests/histories/world.rs",
        ] {
            assert_eq!(lost_effects(path, stored)?, Vec::<String>::new(), "{path}");
        }
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
