//! Random lives of tasks and builds: nobody is ever stuck, whatever happens and whenever the process dies.
#![expect(
    clippy::unwrap_used,
    reason = "what cannot be made or found has to fail the test right there"
)]

mod diagram;
mod movers;
mod play;
mod samples;
mod world;

use rand::SeedableRng;
use rand::rngs::StdRng;
use ropewalk_tests::soak;

use crate::world::World;

/// How many things happen in one history before it is led to its end.
const STEPS: usize = 60;

/// Lives through the history of `seed`; says what is wrong, and after which steps.
fn history(seed: u64, loses_questions: bool) -> Result<(), String> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut world = World::new(&mut chance, loses_questions);
    let mut trace = Vec::new();
    let told = |trace: &[String], wrong: String| {
        format!("seed {seed}: {wrong}\n  after {}", trace.join("\n  then "))
    };
    for _ in 0..STEPS {
        trace.push(play::step(&mut world, &mut chance));
        world.settle();
        movers::check(&world).map_err(|wrong| told(&trace, wrong))?;
    }
    play::to_the_end(&mut world).map_err(|wrong| told(&trace, wrong))
}

#[test]
fn soak_no_history_leaves_anybody_stuck() {
    let histories = soak::count("ROPEWALK_SOAK_HISTORIES", 10_000).unwrap();
    for seed in 0..u64::from(histories) {
        if let Err(wrong) = history(seed, false) {
            panic!("{wrong}");
        }
    }
}

#[test]
fn a_planted_stuck_state_is_found() {
    let found = (0..1_000).find_map(|seed| history(seed, true).err());
    let found = found.expect("a question that is never asked leaves a task stuck");
    assert!(found.contains("is not open"), "{found}");
}
