//! Every event is taken by those that it is meant for, and by nobody else: an event that nobody takes is lost work.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

use crate::workspace::Member;

/// Where the events are listed.
const LIST: (&str, &str) = ("schemas", "src/payload.rs");

/// The agents, each with the file of its profile.
const AGENTS: [(&str, &str, &str); 8] = [
    ("build", "agents/builder", "src/lib.rs"),
    ("ideation", "agents", "src/ideation.rs"),
    ("improvement", "agents", "src/improvement.rs"),
    ("monitor", "agents", "src/monitor.rs"),
    ("pm", "agents", "src/pm.rs"),
    ("questions", "orchestrator", "src/questions/service.rs"),
    ("specification", "agents", "src/specification.rs"),
    ("telegram.left", "telegram", "src/left.rs"),
];

/// Plays a person in rehearsals, and takes what a person would be told.
const PERSON: (&str, &str) = ("cli", "src/scripted.rs");
/// Tells people what happens, from where it is switched on; no work follows from it.
const NOTIFIER: (&str, &str) = ("orchestrator", "src/notices/subscriber.rs");
/// Passes an event on and nothing else, to be measured.
const MEASURED: (&str, &str) = ("benches", "src/pipeline.rs");

/// The events that agents take. All others are for people alone: they are shown, and nothing follows from them. Why PM takes
/// neither `task.failed` nor `budget.exceeded`, says ADR 15.
const TAKEN: [(&str, &[&str]); 43] = [
    ("ideation.message", &["ideation"]),
    ("ideation.completed", &["improvement", "specification"]),
    ("idea.abandoned", &["build"]),
    ("spec.requested", &["specification"]),
    ("spec.revision_requested", &["specification"]),
    ("spec.generated", &["improvement"]),
    ("spec.rejected", &["improvement"]),
    ("spec.approved", &["build", "specification"]),
    ("build.merged", &["build"]),
    ("build.completed", &["improvement", "pm"]),
    ("build.pause", &["build"]),
    ("build.resume", &["build"]),
    ("build.stop", &["build"]),
    ("build.priority", &["build"]),
    ("build.tell", &["build"]),
    ("task.retry", &["build"]),
    ("work.assigned", &["build"]),
    ("decision.made", &["build"]),
    ("lock.released", &["build"]),
    ("lock.revoked", &["build"]),
    ("change.requested", &["pm"]),
    ("change.decided", &["build"]),
    ("review.completed", &["build"]),
    ("task.completed", &["build", "improvement"]),
    ("task.skipped", &["build", "improvement"]),
    ("task.failed", &["improvement"]),
    ("alert.stuck_task", &["pm"]),
    ("alert.stuck_task.escalated", &["pm"]),
    ("alert.stuck_task.cleared", &["pm"]),
    ("alert.deadlock", &["pm"]),
    ("alert.component_down", &["pm"]),
    ("alert.component_down.cleared", &["pm"]),
    ("alert.provider_down", &["pm"]),
    ("alert.provider_down.cleared", &["pm"]),
    ("alert.slot_retired", &["pm"]),
    ("alert.build_failed", &["pm"]),
    ("conflict.detected", &["pm"]),
    ("decision.requested", &["pm"]),
    (
        "question.answered",
        &["build", "ideation", "improvement", "pm", "specification"],
    ),
    (
        "question.defaulted",
        &["build", "improvement", "pm", "specification"],
    ),
    ("phone.update_kept", &["telegram.left"]),
    ("phone.update_left", &["telegram.left"]),
    (
        "schedule.due",
        &["improvement", "monitor", "pm", "questions"],
    ),
];

/// The patterns that take more than one type, which new types fall under unseen.
const WIDE: [(&str, &str); 1] = [("pm", "alert.*")];

/// What an agent takes.
struct Taker<'a> {
    role: &'a str,
    patterns: BTreeSet<String>,
}

/// The events that are taken by others than they are meant for.
pub(crate) fn violations(members: &[Member]) -> Result<Vec<String>> {
    let text = |directory: &str, path: &str| {
        let member = members.iter().find(|member| member.directory == directory);
        let text = member.and_then(|member| member.files.get(path));
        text.with_context(|| format!("`{directory}/{path}` is gone"))
    };
    let events = events(text(LIST.0, LIST.1)?);
    let mut takers = Vec::new();
    for (role, directory, path) in AGENTS {
        takers.push(Taker {
            role,
            patterns: patterns(text(directory, path)?)?,
        });
    }
    let mut found = strangers(members);
    found.extend(judged(&events, &takers, &TAKEN));
    Ok(found)
}

/// The agents that no list here names.
fn strangers(members: &[Member]) -> Vec<String> {
    let known = |directory: &str, path: &str| {
        let listed = AGENTS
            .iter()
            .map(|(_, directory, path)| (*directory, *path));
        listed
            .chain([PERSON, NOTIFIER, MEASURED])
            .any(|one| one == (directory, path))
    };
    let files = members.iter().flat_map(|member| {
        let files = member.files.iter();
        files.map(|(path, text)| (member.directory.as_str(), path.as_str(), text))
    });
    files
        .filter(|(directory, path, _)| path.starts_with("src/") && !known(directory, path))
        .filter(|(_, _, text)| text.contains("fn profile(&self) -> Profile {"))
        .filter(|(_, _, text)| text.contains("\nimpl Agent for "))
        .map(|(directory, path, _)| {
            format!("`{directory}/{path}` is an agent; say in the list which events it takes")
        })
        .collect()
}

/// Judges what agents take by what is meant for them.
fn judged(events: &[&str], takers: &[Taker<'_>], meant: &[(&str, &[&str])]) -> Vec<String> {
    let mut found = Vec::new();
    for event in events {
        let wide = |taker: &Taker<'_>| {
            let mut patterns = WIDE.iter().filter(|(role, _)| *role == taker.role);
            patterns.any(|(_, wide)| {
                let below = wide.trim_end_matches('*');
                taker.patterns.contains(*wide) && event.starts_with(below)
            })
        };
        let take = |taker: &&Taker<'_>| taker.patterns.contains(*event) || wide(taker);
        let is: Vec<&str> = takers.iter().filter(take).map(|taker| taker.role).collect();
        let row = meant.iter().find(|(name, _)| name == event);
        let should = row.map_or(&[][..], |(_, roles)| *roles);
        if is != should {
            found.push(format!(
                "`{event}` is taken by {is:?}, and meant for {should:?}"
            ));
        }
    }
    let unknown = meant.iter().filter(|(name, _)| !events.contains(name));
    found.extend(unknown.map(|(name, _)| format!("`{name}` is no event")));
    found
}

/// Lists the events of the macro that declares them.
fn events(list: &str) -> Vec<&str> {
    let rows = list.lines().map(str::trim);
    rows.filter(|row| row.starts_with(|first: char| first.is_ascii_uppercase()))
        .filter_map(|row| row.split_once(") = \"")?.1.split('"').next())
        .collect()
}

/// Lists the patterns of a profile: in `TAKES`, and in the function itself.
fn patterns(text: &str) -> Result<BTreeSet<String>> {
    let mut profile = ProfileOf::default();
    profile.visit_file(&syn::parse_file(text)?);
    Ok(profile.patterns)
}

/// Gathers the texts of a profile that look like patterns.
#[derive(Default)]
struct ProfileOf {
    inside: bool,
    patterns: BTreeSet<String>,
}

impl ProfileOf {
    fn within(&mut self, visit: impl FnOnce(&mut Self)) {
        self.inside = true;
        visit(self);
        self.inside = false;
    }
}

impl<'ast> Visit<'ast> for ProfileOf {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if item.ident == "TAKES" {
            self.within(|this| visit::visit_item_const(this, item));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.ident == "profile" {
            self.within(|this| visit::visit_impl_item_fn(this, item));
        }
    }

    fn visit_expr_macro(&mut self, item: &'ast syn::ExprMacro) {
        // The elements of `vec![…]` are expressions like any other.
        if let Ok(elements) = item.mac.parse_body_with(
            syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated,
        ) {
            elements.iter().for_each(|element| self.visit_expr(element));
        }
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        if self.inside && text.value().contains('.') {
            self.patterns.insert(text.value());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = "payloads! {\n    /// One.\n    A(A) = \"a.done\",\n    B(B) = \"alert.b\" version 2 from x,\n}";

    fn taker<'a>(role: &'a str, text: &str) -> Taker<'a> {
        Taker {
            role,
            patterns: patterns(text).unwrap(),
        }
    }

    #[test]
    fn an_event_that_its_subscriber_does_not_take_is_found() {
        let events = events(EVENTS);
        assert_eq!(events, ["a.done", "alert.b"]);
        let build = "const TAKES: &[&str] = &[\"a.done\"];";
        let pm = "impl A for B { fn profile(&self) -> P { vec![EventPattern::of(\"alert.*\")] } }";
        let takers = [taker("build", build), taker("pm", pm)];
        let meant: [(&str, &[&str]); 2] = [("a.done", &["build"]), ("alert.b", &["pm"])];
        assert_eq!(judged(&events, &takers, &meant), Vec::<String>::new());
        let forgets = [
            taker("build", "const TAKES: &[&str] = &[];"),
            taker("pm", pm),
        ];
        assert_eq!(
            judged(&events, &forgets, &meant),
            ["`a.done` is taken by [], and meant for [\"build\"]"]
        );
        assert_eq!(
            judged(&events, &takers, &meant[..1]).len(),
            1,
            "taken unasked"
        );
        assert_eq!(
            judged(&events[..1], &takers, &meant),
            ["`alert.b` is no event"]
        );
    }

    #[test]
    fn only_the_profile_of_an_agent_says_what_it_takes() {
        let other = "const NAME: &str = \"a.done\"; impl A { fn handle(&self) { \"a.done\"; } }";
        assert!(patterns(other).unwrap().is_empty());
    }
}
