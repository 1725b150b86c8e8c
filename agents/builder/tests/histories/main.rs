//! Random lives of tasks and builds: nobody is ever stuck, whatever happens and whenever the process dies.
#![expect(
    clippy::unwrap_used,
    reason = "what cannot be made or found has to fail the test right there"
)]

mod alone;
mod diagram;
mod inputs;
mod movers;
mod people;
mod play;
mod samples;
mod world;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ropewalk_tests::soak;

use crate::inputs::PlayedInputs;
use crate::world::World;

/// How many things happen in one history before it is led to its end.
const STEPS: usize = 60;
/// How many more happen to some of those that have ended: builds are landed then, and people let them run again.
const STEPS_AFTERWARDS: usize = 20;
/// How many histories are lived through where nothing else is asked for.
const HISTORIES: u32 = 10_000;

/// Lives through the history of `seed` and returns what it played; says what is wrong, and after which steps.
fn history(seed: u64, loses_questions: bool) -> Result<PlayedInputs, String> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut world = World::new(&mut chance, loses_questions);
    let mut trace = Vec::new();
    let told = |trace: &[String], wrong: String| {
        format!("seed {seed}: {wrong}\n  after {}", trace.join("\n  then "))
    };
    let afterwards = chance.random_bool(0.2).then_some(STEPS_AFTERWARDS);
    for steps in [Some(STEPS), afterwards].into_iter().flatten() {
        for _ in 0..steps {
            trace.push(play::step(&mut world, &mut chance));
            world.settle();
            movers::check(&world).map_err(|wrong| told(&trace, wrong))?;
        }
        play::to_the_end(&mut world).map_err(|wrong| told(&trace, wrong))?;
        trace.push("it has ended".to_owned());
    }
    Ok(world.played)
}

#[test]
fn soak_no_history_leaves_anybody_stuck() {
    let histories = soak::count("ROPEWALK_SOAK_HISTORIES", HISTORIES).unwrap();
    for seed in 0..u64::from(histories) {
        if let Err(wrong) = history(seed, false) {
            panic!("{wrong}");
        }
    }
}

#[test]
fn every_input_is_played() {
    let mut played = PlayedInputs::default();
    // As soon as nothing is missing, the others would add nothing.
    for seed in 0..u64::from(HISTORIES) {
        played.add(history(seed, false).unwrap_or_else(|wrong| panic!("{wrong}")));
        if played.missing().is_empty() {
            return;
        }
    }
    panic!("no history applies {}", played.missing().join(", "));
}

#[test]
fn a_planted_stuck_state_is_found() {
    let found = (0..1_000).find_map(|seed| history(seed, true).err());
    let found = found.expect("a question that is never asked leaves a task stuck");
    assert!(found.contains("is not open"), "{found}");
}
