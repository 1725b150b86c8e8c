//! Holds the wait-for graph: who waits for whom and for what; finds cycles and names who gives way. Pure.
//!
//! A wait for a person, a quota or a budget is a sink: it is drawn, and it never closes a cycle. A build waits for
//! each of its waiting tasks, so that two builds which wait for each other's files form a cycle through their tasks.

mod svg;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::{EdgeRef, IntoEdgeReferences};
use ropewalk_schemas::wait::{Party, Resource, Wait};

use crate::waits::QuestionWait;

/// The waits of a project as a graph; cheap to change edge by edge.
#[derive(Debug, Clone, Default)]
pub struct WaitGraph {
    graph: StableDiGraph<Node, Edge>,
    nodes: HashMap<Node, NodeIndex>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Node {
    Party(Party),
    /// What is no build and no task, and waits; nobody waits for it.
    Other(String),
    /// Something that nobody in the graph can give.
    Sink(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Edge {
    Waits(Box<Wait>),
    /// What is no build and no task waits for an answer.
    Asks(Resource),
    /// A build needs its task.
    Contains,
}

impl Edge {
    /// Returns what is waited for; none where a build needs its task.
    fn resource(&self) -> Option<&Resource> {
        match self {
            Self::Waits(wait) => Some(&wait.resource),
            Self::Asks(resource) => Some(resource),
            Self::Contains => None,
        }
    }
}

/// A cycle of waits, each member waiting for the next and the last for the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Cycle {
    /// The members with what each waits for; a build that only waits for its own task has no wait of its own.
    pub links: Vec<Link>,
}

/// One member of a [`Cycle`].
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Who waits.
    pub waiter: Party,
    /// What for; `None` for a build that waits for its own task.
    pub resource: Option<Resource>,
}

impl Cycle {
    /// Names the members as `alert.deadlock` does, beginning with the smallest, so that one cycle has one name.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .links
            .iter()
            .map(|link| link.waiter.to_string())
            .collect();
        let first = names
            .iter()
            .enumerate()
            .min_by_key(|(_, name)| name.as_str())
            .map_or(0, |(index, _)| index);
        names.rotate_left(first);
        names
    }

    /// Lists the members whose leases the cycle waits for: those whose giving way breaks it.
    pub fn candidates(&self) -> Vec<&Party> {
        let holders = self.links.iter().skip(1).chain(self.links.first());
        self.links
            .iter()
            .zip(holders)
            .filter(|(link, _)| matches!(link.resource, Some(Resource::Lease { .. })))
            .map(|(_, holder)| &holder.waiter)
            .collect()
    }
}

impl WaitGraph {
    /// Builds the graph of `waits`.
    pub fn new<'a>(waits: impl IntoIterator<Item = &'a Wait>) -> Self {
        let mut graph = Self::default();
        for wait in waits {
            graph.insert(wait);
        }
        graph
    }

    /// Adds a wait.
    pub fn insert(&mut self, wait: &Wait) {
        let waiter = self.node(Node::Party(wait.waiter.clone()));
        let holder = match (&wait.holder, wait.resource.is_sink()) {
            (Some(holder), false) => Node::Party(holder.clone()),
            _ => Node::Sink(wait.resource.to_string()),
        };
        let holder = self.node(holder);
        let edge = Edge::Waits(Box::new(wait.clone()));
        let known = self
            .graph
            .edges_connecting(waiter, holder)
            .any(|known| same_wait(known.weight(), wait));
        if !known {
            self.graph.add_edge(waiter, holder, edge);
        }
        if let Party::Task { build, .. } = &wait.waiter {
            let build = self.node(Node::Party(Party::Build { build: *build }));
            if self.graph.find_edge(build, waiter).is_none() {
                self.graph.add_edge(build, waiter, Edge::Contains);
            }
        }
    }

    /// Adds what is no build and no task, and waits for an answer; it is drawn, and it closes no cycle.
    pub fn insert_asking(&mut self, asking: &QuestionWait) {
        let waiter = self.node(Node::Other(asking.name()));
        let answer = self.node(Node::Sink(asking.resource.to_string()));
        self.graph
            .update_edge(waiter, answer, Edge::Asks(asking.resource.clone()));
    }

    /// Takes out the wait of `waiter` for `resource`.
    pub fn remove(&mut self, waiter: &Party, resource: &Resource) {
        let Some(node) = self.nodes.get(&Node::Party(waiter.clone())).copied() else {
            return;
        };
        let edge = self
            .graph
            .edges(node)
            .find(|edge| matches!(edge.weight(), Edge::Waits(wait) if &wait.resource == resource));
        let Some((edge, holder)) = edge.map(|edge| (edge.id(), edge.target())) else {
            return;
        };
        self.graph.remove_edge(edge);
        self.forget_if_alone(holder);
        self.forget_if_alone(node);
    }

    /// Finds a cycle that one of `new_edges` closes together with the waits of the graph; the shortest of the first.
    ///
    /// Looks only at what can be reached from the new edges. Edges that are not in the graph yet are added to a copy of
    /// it: insert them first where the graph is large.
    pub fn cycle_with(&self, new_edges: &[Wait]) -> Option<Cycle> {
        let mut graph = std::borrow::Cow::Borrowed(self);
        if new_edges.iter().any(|wait| !self.contains(wait)) {
            for wait in new_edges {
                graph.to_mut().insert(wait);
            }
        }
        new_edges.iter().find_map(|wait| graph.cycle_through(wait))
    }

    /// Finds one cycle per group that waits for each other; empty when nobody is stuck.
    pub fn cycles(&self) -> Vec<Cycle> {
        petgraph::algo::tarjan_scc(&self.graph)
            .into_iter()
            .filter_map(|knot| {
                let members: HashSet<NodeIndex> = knot.into_iter().collect();
                self.graph
                    .edge_references()
                    .filter(|edge| {
                        members.contains(&edge.source()) && members.contains(&edge.target())
                    })
                    .find_map(|edge| match edge.weight() {
                        Edge::Waits(wait) => self.cycle_through(wait),
                        Edge::Asks(_) | Edge::Contains => None,
                    })
            })
            .collect()
    }

    /// Draws the graph as text, one wait a line.
    pub fn to_text(&self) -> String {
        let mut lines: Vec<String> = self
            .graph
            .edge_references()
            .filter_map(|edge| {
                let resource = edge.weight().resource()?;
                let waiter = self.label(edge.source());
                let held = match self.graph.node_weight(edge.target()) {
                    Some(Node::Party(holder)) => format!(" held by {holder}"),
                    _ => String::new(),
                };
                Some(format!("{waiter} waits for {resource}{held}"))
            })
            .collect();
        lines.sort_unstable();
        lines.iter().fold(String::new(), |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        })
    }

    /// Draws the graph in the DOT language of Graphviz.
    pub fn to_dot(&self) -> String {
        let mut lines: Vec<String> = self
            .graph
            .edge_references()
            .map(|edge| {
                let from = self.label(edge.source());
                let to = self.label(edge.target());
                let style = match edge.weight().resource() {
                    Some(resource) => format!("label={}", quoted(&resource.to_string())),
                    None => "style=dotted".to_owned(),
                };
                format!("  {} -> {} [{style}];", quoted(&from), quoted(&to))
            })
            .collect();
        lines.sort_unstable();
        let mut dot = String::from("digraph waits {\n  rankdir=LR;\n");
        for line in lines {
            dot.push_str(&line);
            dot.push('\n');
        }
        dot.push_str("}\n");
        dot
    }

    fn contains(&self, wait: &Wait) -> bool {
        self.nodes
            .get(&Node::Party(wait.waiter.clone()))
            .is_some_and(|node| {
                self.graph
                    .edges(*node)
                    .any(|edge| same_wait(edge.weight(), wait))
            })
    }

    /// Searches from the holder of `wait` for a way back to its waiter.
    fn cycle_through(&self, wait: &Wait) -> Option<Cycle> {
        if wait.resource.is_sink() {
            return None;
        }
        let holder = *self.nodes.get(&Node::Party(wait.holder.clone()?))?;
        let waiter = *self.nodes.get(&Node::Party(wait.waiter.clone()))?;
        let mut came_from: HashMap<NodeIndex, NodeIndex> = HashMap::new();
        let mut open = VecDeque::from([holder]);
        while let Some(node) = open.pop_front() {
            if node == waiter {
                return Some(self.cycle(wait, holder, waiter, &came_from));
            }
            for next in self.graph.neighbors(node) {
                if next != holder && !came_from.contains_key(&next) {
                    came_from.insert(next, node);
                    open.push_back(next);
                }
            }
        }
        None
    }

    fn cycle(
        &self,
        wait: &Wait,
        holder: NodeIndex,
        waiter: NodeIndex,
        came_from: &HashMap<NodeIndex, NodeIndex>,
    ) -> Cycle {
        let mut path = vec![waiter];
        let mut node = waiter;
        while node != holder
            && let Some(before) = came_from.get(&node)
        {
            path.push(*before);
            node = *before;
        }
        path.reverse();
        let mut links = vec![Link {
            waiter: wait.waiter.clone(),
            resource: Some(wait.resource.clone()),
        }];
        for step in path.windows(2) {
            if let [from, to] = step
                && let Some(Node::Party(party)) = self.graph.node_weight(*from)
            {
                links.push(Link {
                    waiter: party.clone(),
                    resource: self.resource_between(*from, *to),
                });
            }
        }
        Cycle { links }
    }

    /// Names what `from` waits for; a lease before anything else, since a lease can be given up.
    fn resource_between(&self, from: NodeIndex, to: NodeIndex) -> Option<Resource> {
        self.graph
            .edges_connecting(from, to)
            .filter_map(|edge| edge.weight().resource().cloned())
            .min_by_key(|resource| !matches!(resource, Resource::Lease { .. }))
    }

    fn node(&mut self, node: Node) -> NodeIndex {
        if let Some(index) = self.nodes.get(&node) {
            return *index;
        }
        let index = self.graph.add_node(node.clone());
        self.nodes.insert(node, index);
        index
    }

    fn forget_if_alone(&mut self, index: NodeIndex) {
        let mut edges = self
            .graph
            .edges(index)
            .map(|edge| edge.id())
            .collect::<Vec<_>>();
        if !edges.is_empty() {
            return;
        }
        // A task that waits for nothing needs no edge from its build; whoever still waits for it keeps it.
        let incoming = self
            .graph
            .edges_directed(index, petgraph::Direction::Incoming);
        for edge in incoming {
            match edge.weight() {
                Edge::Contains => edges.push(edge.id()),
                Edge::Waits(_) | Edge::Asks(_) => return,
            }
        }
        let builds: Vec<NodeIndex> = edges
            .iter()
            .filter_map(|edge| self.graph.edge_endpoints(*edge))
            .map(|(build, _)| build)
            .collect();
        if let Some(node) = self.graph.remove_node(index) {
            self.nodes.remove(&node);
        }
        for build in builds {
            self.forget_if_alone(build);
        }
    }

    fn label(&self, index: NodeIndex) -> String {
        match self.graph.node_weight(index) {
            Some(Node::Party(party)) => party.to_string(),
            Some(Node::Other(name) | Node::Sink(name)) => name.clone(),
            None => String::new(),
        }
    }
}

/// What decides who gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// How often it gave way already.
    pub yielded: u32,
    /// The smaller, the more urgent.
    pub priority: u32,
    /// How much would be lost, for example milliseconds of work in the attempt.
    pub work_done: u64,
    /// How long it exists, in the same unit for all.
    pub age: u64,
}

/// How often one task gives way before it is spared, so that nobody starves.
const SPARED_AFTER: u32 = 3;

/// Names the member that gives way: the lowest priority, then the least work done, then the youngest; at last by name.
///
/// One that gave way three times already is spared while there is another.
/// Only a member that holds a lease the cycle waits for can break it; `None` when there is none.
pub fn victim(cycle: &Cycle, facts: impl Fn(&Party) -> Facts) -> Option<Party> {
    cycle
        .candidates()
        .into_iter()
        .min_by_key(|party| {
            let facts = facts(party);
            let least_urgent_first = std::cmp::Reverse(facts.priority);
            (
                facts.yielded >= SPARED_AFTER,
                least_urgent_first,
                facts.work_done,
                facts.age,
                (*party).clone(),
            )
        })
        .cloned()
}

fn same_wait(edge: &Edge, wait: &Wait) -> bool {
    matches!(edge, Edge::Waits(known) if known.resource == wait.resource && known.holder == wait.holder)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            letter if letter.is_control() => {
                // Writing to a String cannot fail.
                write!(quoted, "\\\\x{:02x}", u32::from(letter)).ok();
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
