//! A prompt speaks of nothing that its request does not hold: no tool, no field, no section, no freedom.

use std::collections::BTreeSet;

use anyhow::ensure;

use super::{Request, Role, told};

/// Words that are untrue unless the request holds one of these.
const CLAIMS: [(&str, &[&str]); 10] = [
    ("gotcha", &["## Gotchas", "## Known Gotchas", "\"gotchas\""]),
    ("code template", &["## Code Template"]),
    (
        "earlier conversation",
        &["## Earlier Work", "## What Was Tried Before"],
    ),
    ("`<session>`", &["<session>\n"]),
    ("in the first message", &["## Idea: "]),
    ("`question` field", &["\"question\""]),
    ("packages may be installed", &["alone, before a check"]),
    ("packages are installed", &["alone, from the manifests"]),
    ("what your task builds on", &["### T-"]),
    ("read the files", &["\"read\""]),
];

/// Names that the project gives, and not the program: its branch, its idea, its functions, the check that a gate names.
const GIVEN: [&str; 5] = ["main", "streaks", "streak", "longest", "validation"];

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

/// What a request says by itself: the system prompt, and the first and the last words of the user's side.
fn spoken(request: &Request) -> String {
    let mut text = request.system();
    let of_user = request
        .messages()
        .iter()
        .filter(|one| one["role"] == "user");
    for message in of_user {
        text.push('\n');
        text.push_str(&Request::said(message));
    }
    text
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

#[test]
fn a_prompt_names_only_tools_and_fields_of_its_request() -> anyhow::Result<()> {
    let mut unheld = BTreeSet::new();
    for request in &told()?.requests {
        let role = request.role;
        // What a task says of itself, names of its code among it, is the plan's.
        let text = match role {
            Role::Build => request.system(),
            _ => own_words(&spoken(request)),
        };
        let offered = request.body["tools"].to_string();
        for name in names(&text)
            .into_iter()
            .filter(|name| !GIVEN.contains(name))
        {
            let told_by_user = request.messages().iter().any(|message| {
                message["role"] == "assistant" && message.to_string().contains(name)
            });
            if !offered.contains(name) && !told_by_user {
                unheld.insert(format!("{role:?} speaks of `{name}`"));
            }
        }
    }
    ensure!(unheld.is_empty(), "not in the request: {unheld:?}");
    Ok(())
}

#[test]
fn a_prompt_claims_nothing_that_its_request_does_not_hold() -> anyhow::Result<()> {
    for request in &told()?.requests {
        let role = request.role;
        let text = own_words(&spoken(request));
        let whole = format!("{text}\n{}", request.body["tools"]);
        let lower = text.to_lowercase();
        for (claim, holds) in CLAIMS {
            ensure!(
                !lower.contains(claim) || holds.iter().any(|part| whole.contains(part)),
                "{role:?} says `{claim}`, and nothing of {holds:?} is there"
            );
        }
        let asks = request.tools().contains(&"ask") || whole.contains("\"question\"");
        ensure!(
            asks || !lower.contains("ask questions"),
            "{role:?} cannot ask"
        );
    }
    Ok(())
}

#[test]
fn what_is_claimed_in_vain_is_found() -> anyhow::Result<()> {
    let lie = serde_json::json!({
        "system": [{ "type": "text", "text": "Call `fly`. <document>Call `swim`.</document>" }],
        "tools": [{ "name": "finish" }], "messages": [],
    });
    let request = Request::of(lie).ok_or_else(|| anyhow::anyhow!("no request"))?;
    assert_eq!(names(&own_words(&spoken(&request))), ["fly"]);
    Ok(())
}
