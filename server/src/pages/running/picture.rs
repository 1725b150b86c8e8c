//! Draws who waits for whom or for what: whoever waits stands right of what it waits for.

use std::collections::BTreeMap;

use super::WaitView;
use crate::pages::graph::{Graph, Node};

/// The most waits that are drawn: the longest ones.
const MOST: usize = 60;

/// Draws the waits; nothing where nobody waits.
pub(super) fn of(waits: &[WaitView]) -> Option<Graph> {
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    for wait in waits.iter().take(MOST) {
        let (awaited, href) = wait.awaited();
        let awaited = node(&mut nodes, awaited, href).id.clone();
        let waiter = node(&mut nodes, &wait.waiter, wait.waiter_href.as_deref());
        waiter.tone = "waits";
        waiter.text = plain(&wait.resource);
        if !waiter.needs.contains(&awaited) {
            waiter.needs.push(awaited);
        }
    }
    Graph::of("Who waits for whom", nodes.into_values().collect())
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
