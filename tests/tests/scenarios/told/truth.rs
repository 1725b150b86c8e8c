//! A prompt speaks of nothing that its request does not hold: no tool, no field, no section, no freedom. Nor do the descriptions of
//! tools, nor their results, as far as names go. In lists and fences the program and others speak in turn: there the program is
//! heard where what was filled in is marked.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::marks;
use super::prompts::ORIGINS;
use super::whole::whole;
use super::{Request, Role, told};

/// Words that are untrue unless the request holds one of these.
const CLAIMS: [(&str, &[&str]); 16] = [
    ("gotcha", &["## Gotchas", "## Known Gotchas", "\"gotchas\""]),
    ("code template", &["## Code Template"]),
    (
        "earlier conversation",
        &["## Earlier Work", "## What Was Tried Before"],
    ),
    ("`<session>`", &["<session>\n"]),
    ("in the first message", &["## Idea: "]),
    ("`question` field", &["\"question\""]),
    ("ask questions", &["\"ask\"", "\"question\""]),
    ("packages may be installed", &["alone, before a check"]),
    ("packages are installed", &["alone, from the manifests"]),
    ("what your task builds on", &["### T-"]),
    ("read the files", &["\"read\""]),
    ("lies before you", &["\"read\""]),
    ("test run", &["\"bash\""]),
    ("run the validation command", &["\"bash\""]),
    ("on the phone", &["press or type"]),
    ("presses", &["press or type"]),
];

/// Words that are untrue where the request holds one of these.
const REFUTED: [(&str, &[&str]); 3] = [
    (
        "no package is installed",
        &["made ready by", "## Made Ready"],
    ),
    ("no package may be installed", &["made ready by"]),
    ("loopback, and on nothing", &["\"web_fetch\""]),
];

/// Names that the project gives, and not the program: its branch, its idea, its functions, the checks that a gate names.
const GIVEN: [&str; 6] = [
    "main",
    "streaks",
    "streak",
    "longest",
    "tests",
    "validation",
];

/// What a text may be that a field of a role takes, where no schema lists it: kinds of artifacts and of decisions, priorities,
/// a phase, package managers, commands of git.
const VALUES: [(Role, &[&str]); 3] = [
    (
        Role::Ideation,
        &["brief", "problem", "differentiator", "scope"],
    ),
    (
        Role::Specification,
        &["must", "should", "could", "database", "npm", "pip"],
    ),
    (Role::Build, &["blame", "diff", "log", "show"]),
];

/// Why a question is asked, for roles whose submission may hold one.
const TRIGGERS: [&str; 6] = [
    "external_dependencies",
    "missing_context",
    "multiple_architectures",
    "multiple_implementations",
    "problem_statement_vague",
    "requirement_ambiguous",
];

/// What a request says in one place.
struct Words {
    place: String,
    /// In the words of the program.
    text: String,
    /// With what was filled in, for who looks for what the words speak of.
    told: String,
}

impl Words {
    fn of(place: String, text: &str) -> Self {
        Self {
            place,
            text: marks::own(text),
            told: marks::plain(text),
        }
    }
}

/// Takes documents out: they are what others wrote, and speak of what they like.
fn own_words(text: &str) -> String {
    let mut own = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<document>") {
        own.push_str(before);
        rest = after.split_once("</document>").map_or("", |(_, rest)| rest);
    }
    own + rest
}

/// Takes out of a message what else is of others, where nothing tells it from the words of the program: what stands in fences, and
/// the points of lists with what goes on below.
fn own_prose(text: &str) -> String {
    let own = own_words(text);
    if marks::are_in(text) {
        return own;
    }
    let (mut fenced, mut listed) = (false, false);
    let is_own = |line: &&str| {
        if line.starts_with("```") {
            fenced = !fenced;
            return false;
        }
        listed = line.starts_with("- ") || listed && line.starts_with("  ");
        !fenced && !listed
    };
    own.lines().filter(is_own).collect::<Vec<_>>().join("\n")
}

/// Collects what a tool says of itself and of its fields.
fn described(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(words) if name == "description" => {
                        text.push_str(words);
                        text.push('\n');
                    }
                    value => described(value, text),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| described(value, text)),
        _ => {}
    }
}

/// Lists what a request says by itself: the system prompt, the words of the user's side, and those of each tool.
fn spoken(request: &Request) -> Vec<Words> {
    let system = Words::of(
        "the system prompt".to_owned(),
        &own_words(&request.system()),
    );
    let of_user = request
        .messages()
        .iter()
        .filter(|one| one["role"] == "user");
    let messages = of_user.enumerate().map(|(number, message)| {
        let prose = own_prose(&Request::said(message));
        Words::of(format!("message {number} to it"), &prose)
    });
    let tools = request.body["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|tool| {
        let mut text = String::new();
        described(tool, &mut text);
        Words::of(format!("the tool {}", tool["name"]), &text)
    });
    std::iter::once(system)
        .chain(messages)
        .chain(tools)
        .collect()
}

/// Lists the names in backticks that look like those of tools and their fields.
fn names(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_name = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    quoted.filter(is_name).collect()
}

/// Collects the names that tools have: their own, those of their fields, and the words that a field may be.
fn held(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let (true, Some(name)) = (matches!(&**key, "name" | "const"), value.as_str()) {
                    names.insert(name.to_owned());
                }
                if let ("properties", Some(fields)) = (&**key, value.as_object()) {
                    names.extend(fields.keys().cloned());
                }
                if let ("enum", Some(words)) = (&**key, value.as_array()) {
                    names.extend(words.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                held(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| held(value, names)),
        _ => {}
    }
}

/// What a request holds: all of its own words, the names of its tools and fields, and the headings of its sections.
struct Held {
    names: BTreeSet<String>,
    whole: String,
}

impl Held {
    fn by(request: &Request, words: &[Words]) -> Self {
        let mut names = BTreeSet::new();
        held(&request.body["tools"], &mut names);
        let values = VALUES.iter().filter(|(role, _)| *role == request.role);
        if names.contains("trigger") {
            names.extend(TRIGGERS.map(str::to_owned));
        }
        names.extend(values.flat_map(|(_, values)| values.iter().map(ToString::to_string)));
        let quoted = names.iter().map(|name| format!("\"{name}\"\n"));
        let told = words.iter().map(|words| format!("{}\n", words.told));
        let whole = told.chain(quoted).collect();
        Self { names, whole }
    }

    /// Says whether one of the parts is there.
    fn holds(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.whole.contains(part))
    }

    fn has_section(&self, title: &str) -> bool {
        let mut lines = self.whole.lines();
        lines.any(|line| line.starts_with('#') && line.contains(title))
    }
}

/// Lists the names in a text that nobody gave: neither the request nor the project, nor who is asked.
fn unknown_names(request: &Request, held: &Held, text: &str) -> BTreeSet<String> {
    let said_by_it = |name: &str| {
        let mut messages = request.messages().iter();
        messages.any(|message| message["role"] == "assistant" && message.to_string().contains(name))
    };
    let names = names(text).into_iter();
    let unknown = names.filter(|name| !GIVEN.contains(name) && !held.names.contains(*name));
    let unknown = unknown.filter(|name| !said_by_it(name));
    unknown.map(str::to_owned).collect()
}

/// Lists what a request says that it does not hold.
fn untruths(request: &Request) -> BTreeSet<String> {
    let words = spoken(request);
    let held = Held::by(request, &words);
    let mut found = BTreeSet::new();
    for (number, message) in request.messages().iter().enumerate() {
        let unknown = unknown_names(request, &held, &Request::results(message)).into_iter();
        found
            .extend(unknown.map(|name| format!("a result in message {number} speaks of `{name}`")));
    }
    for Words { place, text, .. } in &words {
        let unknown = unknown_names(request, &held, text).into_iter();
        found.extend(unknown.map(|name| format!("{place} speaks of `{name}`")));
        let lower = text.to_lowercase();
        let claims = CLAIMS.iter().filter(|(claim, _)| lower.contains(claim));
        let untrue = claims.filter(|(_, parts)| !held.holds(parts));
        found.extend(untrue.map(|(claim, _)| format!("{place} says `{claim}`")));
        let claims = REFUTED.iter().filter(|(claim, _)| lower.contains(claim));
        let untrue = claims.filter(|(_, parts)| held.holds(parts));
        found.extend(untrue.map(|(claim, _)| format!("{place} says `{claim}`")));
        let prose: String = text
            .split_inclusive('\n')
            .filter(|line| !line.starts_with('#'))
            .collect();
        let titles = ORIGINS.iter().map(|(title, _)| title.trim());
        let told = titles.filter(|title| title.contains(' ') && prose.contains(title));
        let missing = told.filter(|title| !held.has_section(title));
        found.extend(missing.map(|title| format!("{place} speaks of the section `{title}`")));
    }
    found
}

#[test]
fn no_request_of_a_role_speaks_of_what_it_does_not_hold() -> anyhow::Result<()> {
    let mut found = BTreeSet::new();
    for role in Role::ALL {
        let whole = whole(role)?;
        for request in told()?.of(role).into_iter().chain(&whole) {
            let untrue = untruths(request).into_iter();
            found.extend(untrue.map(|untruth| format!("{role:?}: {untruth}")));
        }
    }
    ensure!(found.is_empty(), "not in the request: {found:#?}");
    Ok(())
}

/// Where a lie is planted.
#[derive(Debug, Clone, Copy)]
enum Place {
    System,
    Message,
    Tool,
    Field,
}

/// Returns a request that says one thing more, and the place as it is named.
fn planted(request: &Request, place: Place, lie: &str) -> anyhow::Result<(Request, String)> {
    let mut body = request.body.clone();
    let block = json!({ "type": "text", "text": lie });
    let name = match place {
        Place::System => {
            body["system"].as_array_mut().context("blocks")?.push(block);
            "the system prompt".to_owned()
        }
        Place::Message => {
            let message = &mut body["messages"][0]["content"];
            message.as_array_mut().context("blocks")?.push(block);
            "message 0 to it".to_owned()
        }
        Place::Tool => {
            body["tools"][0]["description"] = json!(lie);
            format!("the tool {}", body["tools"][0]["name"])
        }
        Place::Field => {
            body["tools"][0]["input_schema"]["properties"]["path"]["description"] = json!(lie);
            format!("the tool {}", body["tools"][0]["name"])
        }
    };
    Ok((Request::of(body, 0).context("a request of a role")?, name))
}

#[test]
fn a_lie_is_found_in_each_role_wherever_it_is_planted() -> anyhow::Result<()> {
    for role in Role::ALL {
        let request = told()?.of(role)[0];
        let held = Held::by(request, &spoken(request));
        let claims = CLAIMS.iter().filter(|(_, parts)| !held.holds(parts));
        let mut lies: Vec<(String, String)> = claims
            .map(|(claim, _)| (format!("See: {claim}."), format!("says `{claim}`")))
            .collect();
        ensure!(lies.len() > 3, "{role:?} holds nearly all");
        lies.push(("Call `fly`.".to_owned(), "speaks of `fly`".to_owned()));
        lies.push((
            "It stands in Files to Leave Alone.".to_owned(),
            "speaks of the section `Files to Leave Alone`".to_owned(),
        ));
        for place in [Place::System, Place::Message, Place::Tool, Place::Field] {
            for (lie, finding) in &lies {
                let (liar, name) = planted(request, place, lie)?;
                let found = untruths(&liar);
                ensure!(
                    found.contains(&format!("{name} {finding}"))
                        && found.iter().all(|untruth| untruth.starts_with(&name)),
                    "{role:?}, {place:?}, `{lie}`: {found:?}"
                );
            }
        }
        // What others wrote may speak of what it likes.
        let quoted = "<document>\nCall `fly`.\n</document>\n";
        for place in [Place::System, Place::Message] {
            let (quoting, _) = planted(request, place, quoted)?;
            assert_eq!(untruths(&quoting), BTreeSet::new(), "{role:?}, {place:?}");
        }
    }
    Ok(())
}

#[test]
fn a_lie_in_a_list_is_found_where_what_was_filled_in_is_marked() -> anyhow::Result<()> {
    for role in Role::ALL {
        for request in &whole(role)? {
            for lie in [
                "- Call `fly`.",
                "- «one»: call `fly`\n",
                "1. See\n  - `fly`",
            ] {
                let (liar, name) = planted(request, Place::Message, lie)?;
                let expected = BTreeSet::from([format!("{name} speaks of `fly`")]);
                assert_eq!(untruths(&liar), expected, "{role:?}, {lie}");
            }
            let (quoting, _) = planted(request, Place::Message, "- «Call `fly`.»")?;
            assert_eq!(untruths(&quoting), BTreeSet::new(), "{role:?}");
        }
    }
    Ok(())
}

#[test]
fn what_a_request_says_against_itself_is_a_lie() -> anyhow::Result<()> {
    for role in Role::ALL {
        let request = told()?.of(role)[0];
        for (claim, parts) in REFUTED {
            let (alone, name) = planted(request, Place::System, &format!("See: {claim}."))?;
            assert_eq!(untruths(&alone), BTreeSet::new(), "{role:?}, `{claim}`");
            for part in parts {
                let (both, _) = planted(&alone, Place::System, part)?;
                let found = untruths(&both);
                ensure!(
                    found.contains(&format!("{name} says `{claim}`")),
                    "{role:?}, `{claim}` and `{part}`: {found:?}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_name_that_nobody_gave_is_found_in_the_result_of_a_call() -> anyhow::Result<()> {
    let result = |text: &str| {
        let mut body = told()?.of(Role::Build)[0].body.clone();
        let content = json!([{ "type": "tool_result", "tool_use_id": "a", "content": text }]);
        let messages = body["messages"].as_array_mut().context("messages")?;
        messages.push(json!({ "role": "user", "content": content }));
        let request = Request::of(body, 0).context("a request of a role")?;
        anyhow::Ok(untruths(&request))
    };
    assert_eq!(
        result("Not taken; ask with `request_file`.")?,
        BTreeSet::new()
    );
    let expected = BTreeSet::from(["a result in message 1 speaks of `fly`".to_owned()]);
    assert_eq!(result("Not taken; call `fly`.")?, expected);
    Ok(())
}
