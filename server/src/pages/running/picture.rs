//! Draws who waits for whom or for what, and who holds which files: whoever waits stands right of what it waits for, and a
//! file right of whoever holds it.

use std::collections::BTreeMap;

use ropewalk_desk::views::wait::{self, WaitRow};
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::wait::{Party, Resource};
use ropewalk_schemas::{BuildId, RepoPath, Slug};

use super::{WaitView, of_party};
use crate::pages::graph::{Graph, Node};

/// The most waits that are drawn: the longest ones.
const MOST: usize = 60;
/// The most files that are drawn one by one beside those that somebody waits for: locked ones first. What else each holder
/// has is one box.
const FILES: usize = 40;

/// Draws the waits, and the files that are locked or owned; nothing where there are none.
pub(super) fn of(
    waits: &[WaitView],
    locks: &[Lease],
    owned: &[(Build, Vec<RepoPath>)],
    ideas: &BTreeMap<BuildId, Slug>,
) -> Option<Graph> {
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    for (holder, (path, how)) in first(&mut nodes, &held(locks, owned, ideas)) {
        let file = file(&mut nodes, (path, how));
        need(file, holder);
    }
    for wait in waits.iter().take(MOST) {
        let (awaited, href) = wait.awaited();
        let mut awaited = node(&mut nodes, awaited, href).id.clone();
        if let Some(held) = held_file(wait) {
            let file = file(&mut nodes, held);
            need(file, std::mem::replace(&mut awaited, file.id.clone()));
        }
        let waiter = node(&mut nodes, &wait.waiter, wait.waiter_href.as_deref());
        waiter.tone = "waits";
        waiter.text = plain(&wait.resource);
        need(waiter, awaited);
    }
    Graph::of(
        "Who waits for whom, and who holds what",
        nodes.into_values().collect(),
    )
}

/// A file with who has it: the name of the holder, and its page.
struct HeldFile<'a> {
    holder: String,
    href: String,
    path: &'a str,
    how: &'static str,
}

/// Lists the files that somebody has: those that are locked before those that are owned.
fn held<'a>(
    locks: &'a [Lease],
    owned: &'a [(Build, Vec<RepoPath>)],
    ideas: &BTreeMap<BuildId, Slug>,
) -> Vec<HeldFile<'a>> {
    let locks = locks.iter().map(|lock| {
        let (build, task) = (lock.holder.build, lock.holder.task.clone());
        let holder = Party::Task { build, task };
        HeldFile {
            holder: wait::party_in_words(&holder, ideas),
            href: of_party(&holder),
            path: lock.path.as_str(),
            how: "locked",
        }
    });
    let owned = owned.iter().flat_map(|(build, files)| {
        let holder = Party::Build { build: build.id };
        let of_owner = BTreeMap::from([(build.id, build.idea.clone())]);
        let name = wait::party_in_words(&holder, &of_owner);
        files.iter().map(move |path| HeldFile {
            holder: name.clone(),
            href: of_party(&holder),
            path: path.as_str(),
            how: "owned",
        })
    });
    locks.chain(owned).collect()
}

/// Draws who has the files, and returns the first ones, each with the name of its holder; the others are one box for each
/// holder.
fn first<'a>(
    nodes: &mut BTreeMap<String, Node>,
    held: &[HeldFile<'a>],
) -> Vec<(String, (&'a str, &'static str))> {
    let mut drawn = Vec::new();
    let mut folded: BTreeMap<(String, &'static str), (usize, &str)> = BTreeMap::new();
    for (number, file) in held.iter().enumerate() {
        let holder = node(nodes, &file.holder, Some(&file.href)).id.clone();
        if number < FILES {
            drawn.push((holder, (file.path, file.how)));
        } else {
            let (count, _) = folded.entry((holder, file.how)).or_insert((0, &file.href));
            *count += 1;
        }
    }
    for ((holder, how), (count, href)) in folded {
        let others = counted(count, "further file");
        let others = node(nodes, &format!("{others}, {how} by {holder}"), Some(href));
        others.tone = "calm";
        how.clone_into(&mut others.text);
        need(others, holder);
    }
    drawn
}

/// Returns the file that somebody holds who is waited for, and how it is held.
fn held_file(wait: &WaitView) -> Option<(&str, &'static str)> {
    let WaitRow::Party(party) = &wait.row else {
        return None;
    };
    party.holder.as_ref()?;
    match &party.resource {
        Resource::Lease { path } => Some((path.as_str(), "locked")),
        Resource::Ownership { path } => Some((path.as_str(), "owned")),
        _ => None,
    }
}

/// Returns the node of a file; one that is locked by a task and owned by a build is two.
fn file<'a>(
    nodes: &'a mut BTreeMap<String, Node>,
    (path, how): (&str, &'static str),
) -> &'a mut Node {
    let file = node(nodes, &format!("{path}, {how}"), None);
    file.tone = "calm";
    how.clone_into(&mut file.text);
    file
}

fn need(node: &mut Node, needed: String) {
    if !node.needs.contains(&needed) {
        node.needs.push(needed);
    }
}

/// Returns the node of a name, made where there is none yet.
fn node<'a>(nodes: &'a mut BTreeMap<String, Node>, name: &str, href: Option<&str>) -> &'a mut Node {
    let name = plain(name);
    let node = nodes.entry(name.clone()).or_insert_with(|| Node {
        id: name,
        text: String::new(),
        tone: "busy",
        href: "/running".to_owned(),
        needs: Vec::new(),
    });
    if let Some(href) = href {
        href.clone_into(&mut node.href);
    }
    node
}

/// Returns what fits into a box: no marks of code, and no word that each box would begin with.
fn plain(text: &str) -> String {
    text.trim_start_matches("task ").replace('`', "")
}
