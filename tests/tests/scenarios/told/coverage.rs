//! Whatever a template can say is in a request that is looked at: each section, and each line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::ensure;

use super::marks;
use super::prompts::{ORIGINS, headings};
use super::whole::whole;
use super::{Request, Role, told};

/// Templates of what a model without tools is told, which sums up a conversation.
const OF_NO_ROLE: [&str; 2] = ["compaction.md", "compaction-turn.md"];
/// What is shorter may stand in a request by chance.
const SHORTEST: usize = 12;

/// Reads the templates of roles, each with its name.
fn templates() -> anyhow::Result<Vec<(String, String)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/prompts");
    let mut templates = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !OF_NO_ROLE.contains(&name.as_str()) {
            templates.push((name, fs::read_to_string(entry.path())?));
        }
    }
    Ok(templates)
}

/// Returns what a request says of itself: the system prompt, and the words of the user's side.
fn texts(request: &Request) -> Vec<String> {
    let messages = request.messages().iter();
    let of_user = messages.filter(|message| message["role"] == "user");
    let texts = of_user.map(Request::said).chain([request.system()]);
    texts.map(|text| marks::plain(&text)).collect()
}

/// Lists how the headings in the templates of roles begin, as far as nothing is filled in.
fn sections() -> anyhow::Result<BTreeSet<String>> {
    let mut sections = BTreeSet::new();
    for (_, text) in templates()? {
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let begins = headings.map(|line| {
            let title = line.trim_start_matches('#').trim_start();
            title.split('{').next().unwrap_or_default().to_owned()
        });
        sections.extend(begins.filter(|begin| !begin.is_empty()));
    }
    Ok(sections)
}

/// Lists what a template says word for word, line by line.
fn literals(template: &str) -> Vec<&str> {
    let mut literals = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let tags = ["{{", "{%"].into_iter();
        let begins = tags.filter_map(|tag| rest.find(tag)).min();
        let (literal, tag) = rest.split_at(begins.unwrap_or(rest.len()));
        let lines = literal.lines().map(str::trim);
        literals.extend(lines.filter(|line| line.len() >= SHORTEST && line.contains(' ')));
        let ends = if tag.starts_with("{{") { "}}" } else { "%}" };
        rest = tag.split_once(ends).map_or("", |(_, rest)| rest);
    }
    literals
}

#[test]
fn every_section_that_a_prompt_can_have_is_in_a_request_that_is_looked_at() -> anyhow::Result<()> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for role in Role::ALL {
        let whole = whole(role)?;
        for text in told()?.of(role).into_iter().chain(&whole).flat_map(texts) {
            seen.extend(headings(&text).into_iter().map(str::to_owned));
        }
    }
    let is_seen = |begin: &str| seen.iter().any(|heading| heading.starts_with(begin));
    let sections = sections()?;
    ensure!(sections.len() > 40, "{sections:?}");
    let origins = ORIGINS.iter().map(|(begin, _)| *begin);
    let begins = sections.iter().map(String::as_str).chain(origins);
    let unseen: Vec<&str> = begins.filter(|begin| !is_seen(begin)).collect();
    ensure!(unseen.is_empty(), "in no request: {unseen:?}");
    let has_origin = |heading: &&String| {
        let mut origins = ORIGINS.iter();
        origins.any(|(begin, _)| heading.starts_with(begin))
    };
    let unknown: Vec<&String> = seen.iter().filter(|heading| !has_origin(heading)).collect();
    ensure!(
        unknown.is_empty(),
        "nobody says where {unknown:?} come from"
    );
    Ok(())
}

#[test]
fn every_line_that_a_template_can_say_is_in_a_request_that_is_looked_at_whole() -> anyhow::Result<()>
{
    let mut looked_at = Vec::new();
    for role in Role::ALL {
        looked_at.extend(whole(role)?.iter().flat_map(texts));
    }
    let is_seen = |line: &str| looked_at.iter().any(|text| text.contains(line));
    let mut unseen = Vec::new();
    for (name, template) in templates()? {
        let lines = literals(&template);
        ensure!(!lines.is_empty(), "`{name}` says nothing");
        let lines = lines.into_iter().filter(|line| !is_seen(line));
        unseen.extend(lines.map(|line| format!("{name}: {line}")));
    }
    ensure!(unseen.is_empty(), "in no request: {unseen:#?}");
    Ok(())
}
