//! The real runner, bus and store under one seed: which delivery goes on, which fails, and where the process dies.
//!
//! Every handler waits at a stage until the director lets it go on. The director waits until everybody who can come has
//! come, and then chooses by the seed alone; so that one seed is one history, and the same again in every run.

#![expect(
    clippy::print_stdout,
    reason = "the counts are what a run of many seeds is for"
)]

#[path = "../faults/ledger.rs"]
mod ledger;

mod actors;
mod director;
mod process;

use std::collections::BTreeSet;
use std::thread;

use anyhow::{Context, ensure};
use director::{History, play};
use ropewalk_tests::soak::count;

/// How many seeds `./check` plays.
const SEEDS: u32 = 200;

fn history(seed: u64) -> anyhow::Result<History> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let played = runtime.block_on(play(seed));
    runtime.shutdown_background();
    played.with_context(|| format!("seed {seed}"))
}

/// Plays seeds on as many threads as there are processors.
fn histories(seeds: &[u64]) -> anyhow::Result<Vec<History>> {
    let threads = thread::available_parallelism()?.get();
    let part = seeds.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = seeds
            .chunks(part)
            .map(|part| scope.spawn(|| part.iter().map(|seed| history(*seed)).collect::<Vec<_>>()))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| {
                part.join()
                    .unwrap_or_else(|_| vec![Err(anyhow::anyhow!("a panic"))])
            })
            .collect()
    })
}

#[test]
fn whatever_the_seed_every_event_has_its_effect_once() -> anyhow::Result<()> {
    let seeds: Vec<u64> = (0..count("ROPEWALK_SOAK_SEEDS", SEEDS)?.into()).collect();
    let played = histories(&seeds)?;
    let sum = |of: fn(&History) -> u32| played.iter().map(of).sum::<u32>();
    let (crashes, failures) = (sum(|one| one.crashes), sum(|one| one.failures));
    ensure!(
        crashes >= u32::try_from(seeds.len())?,
        "only {crashes} crashes"
    );
    ensure!(
        failures >= u32::try_from(seeds.len())?,
        "only {failures} failures"
    );
    let different: BTreeSet<u64> = played.iter().map(|one| one.hash).collect();
    assert_eq!(different.len(), seeds.len(), "seeds that do not matter");
    println!(
        "{} seeds, {} steps, {crashes} crashes, {failures} failures: 0 lost, 0 doubled",
        seeds.len(),
        sum(|one| one.steps)
    );
    Ok(())
}

#[test]
fn one_seed_is_one_history() -> anyhow::Result<()> {
    let seeds: Vec<u64> = (1_000..1_010).collect();
    let (first, second) = (histories(&seeds)?, histories(&seeds)?);
    for (seed, (first, second)) in seeds.iter().zip(first.iter().zip(&second)) {
        ensure!(!first.trace.is_empty(), "nothing happened");
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert_eq!(first.hash, second.hash, "seed {seed}");
    }
    Ok(())
}
