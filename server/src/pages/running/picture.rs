//! Draws who waits for whom or for what, and who holds which files: whoever waits stands right of what it waits for, and a
//! file right of whoever holds it.

use std::collections::BTreeMap;

use ropewalk_desk::views::wait::{self, WaitRow};
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::wait::{Party, Resource};
use ropewalk_schemas::{BuildId, Slug};

use super::{WaitView, of_party};
use crate::pages::graph::{Graph, Node};

/// The most waits that are drawn: the longest ones.
const MOST: usize = 60;
/// The most locked files that are drawn beside those that somebody waits for.
const LOCKS: usize = 40;

/// Draws the waits, and the files that are locked; nothing where there are none.
pub(super) fn of(
    waits: &[WaitView],
    locks: &[Lease],
    ideas: &BTreeMap<BuildId, Slug>,
) -> Option<Graph> {
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    for lock in locks.iter().take(LOCKS) {
        let (build, task) = (lock.holder.build, lock.holder.task.clone());
        let holder = Party::Task { build, task };
        let name = wait::party_in_words(&holder, ideas);
        let holder = node(&mut nodes, &name, Some(&of_party(&holder))).id.clone();
        let file = file(&mut nodes, (lock.path.as_str(), "locked"));
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
