//! The check for a cycle when a wait appears, among 100,000 waits.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, EdgeRef};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ropewalk_coordination::deadlock;
use ropewalk_coordination::graph::WaitGraph;
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, RepoPath};
use ropewalk_store::{ChangeSet, Store};

use crate::disk;
use crate::figure::{Figure, Goal};
use crate::sample::Times;
use crate::settings::Settings;
use crate::words::{Words, task_id};

const WAITS: usize = 100_000;
const TASKS_OF_A_BUILD: usize = 50;

/// Tasks that wait for each other without a cycle: each for one that comes later.
struct Knot {
    words: Words,
    builds: Vec<BuildId>,
    random: StdRng,
}

impl Knot {
    fn new() -> Self {
        let words = Words::new();
        let builds = (0..=WAITS / TASKS_OF_A_BUILD)
            .map(|_| words.ids.next().into())
            .collect();
        Self {
            words,
            builds,
            random: StdRng::seed_from_u64(7),
        }
    }

    fn party(&self, number: usize) -> Result<Party> {
        let build = self
            .builds
            .get(number / TASKS_OF_A_BUILD)
            .context("a task without a build")?;
        Ok(Party::Task {
            build: *build,
            task: task_id(number % TASKS_OF_A_BUILD)?,
        })
    }

    fn wait(&self, waiter: usize, holder: usize) -> Result<Wait> {
        Ok(Wait {
            waiter: self.party(waiter)?,
            resource: Resource::Lease {
                path: RepoPath::parse(&format!("src/part_{holder}.rs"))?,
            },
            holder: Some(self.party(holder)?),
            since: self.words.clock.now(),
        })
    }

    /// Returns who waits for whom.
    fn edges(&mut self) -> Vec<(usize, usize)> {
        (0..WAITS)
            .map(|waiter| (waiter, self.later(waiter)))
            .collect()
    }

    fn later(&mut self, waiter: usize) -> usize {
        self.random.random_range(waiter + 1..=WAITS)
    }

    /// Returns a wait that is new: half of them close a cycle if the holder leads back.
    fn new_edge(&mut self) -> (usize, usize) {
        let one = self.random.random_range(0..WAITS);
        let other = self.random.random_range(0..WAITS);
        (one, if one == other { one + 1 } else { other })
    }
}

/// Measures the check in memory, and through the store.
pub(crate) async fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let mut knot = Knot::new();
    let edges = knot.edges();
    let raw = raw(&mut knot, &edges, settings.time / 2);
    let waits = edges
        .iter()
        .map(|(waiter, holder)| knot.wait(*waiter, *holder))
        .collect::<Result<Vec<_>>>()?;
    let ours = in_memory(&mut knot, &waits, settings.time / 2)?;
    let stored = through_the_store(&mut knot, &waits, settings.time).await?;
    let memory = Figure::cost(
        "cycle check on a new wait, 100,000 waits, p50",
        "ms",
        ours.millis(50)?,
    )
    .p99(ours.millis(99)?)
    .beside(raw.millis(50)?, "petgraph, search from the new edge")
    .goal(Goal::Value(0.1));
    let stored = Figure::cost(
        "the same with what it reaches read from the store, p50",
        "ms",
        stored.millis(50)?,
    )
    .p99(stored.millis(99)?)
    .beside(raw.millis(50)?, "petgraph, search from the new edge");
    Ok(vec![memory, stored])
}

fn raw(knot: &mut Knot, edges: &[(usize, usize)], time: Duration) -> Times {
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    let nodes: Vec<NodeIndex> = (0..=WAITS).map(|_| graph.add_node(())).collect();
    for (waiter, holder) in edges {
        graph.add_edge(nodes[*waiter], nodes[*holder], ());
    }
    let mut times = Times::default();
    let begun = Instant::now();
    while begun.elapsed() < time {
        let (waiter, holder) = knot.new_edge();
        let begun = Instant::now();
        let edge = graph.add_edge(nodes[waiter], nodes[holder], ());
        black_box(leads_back(&graph, nodes[holder], nodes[waiter]));
        graph.remove_edge(edge);
        times.add(begun.elapsed());
    }
    times
}

/// A search that keeps what it saw in a set, since a bit for each of 100,000 nodes would have to be cleared first.
fn leads_back(graph: &DiGraph<(), ()>, from: NodeIndex, to: NodeIndex) -> bool {
    let mut search: Dfs<NodeIndex, std::collections::HashSet<NodeIndex>> = Dfs::default();
    search.move_to(from);
    while let Some(node) = search.next(graph) {
        if node == to || graph.edges(node).any(|edge| edge.target() == to) {
            return true;
        }
    }
    false
}

fn in_memory(knot: &mut Knot, waits: &[Wait], time: Duration) -> Result<Times> {
    let mut graph = WaitGraph::new(waits);
    let mut times = Times::default();
    let begun = Instant::now();
    while begun.elapsed() < time {
        let (waiter, holder) = knot.new_edge();
        let wait = knot.wait(waiter, holder)?;
        let begun = Instant::now();
        graph.insert(&wait);
        black_box(graph.cycle_with(std::slice::from_ref(&wait)));
        graph.remove(&wait.waiter, &wait.resource);
        times.add(begun.elapsed());
    }
    Ok(times)
}

async fn through_the_store(knot: &mut Knot, waits: &[Wait], time: Duration) -> Result<Times> {
    let directory = disk::directory()?;
    let store = disk::store(directory.path()).await?;
    fill(&store, waits).await?;
    let mut times = Times::default();
    let begun = Instant::now();
    while begun.elapsed() < time {
        let (waiter, holder) = knot.new_edge();
        let wait = knot.wait(waiter, holder)?;
        let begun = Instant::now();
        black_box(deadlock::find(&store, std::slice::from_ref(&wait), wait.since).await?);
        times.add(begun.elapsed());
    }
    store.close().await?;
    Ok(times)
}

async fn fill(store: &Store, waits: &[Wait]) -> Result<()> {
    for chunk in waits.chunks(2_000) {
        let mut changes = ChangeSet::new();
        for wait in chunk {
            changes.put(wait);
        }
        store.commit(changes).await?;
    }
    Ok(())
}
