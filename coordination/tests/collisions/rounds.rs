//! Whoever gives way again and again gets through at last.

use anyhow::{Context as _, Result, ensure};
use ropewalk_coordination::locks;
use ropewalk_store::ChangeSet;

use crate::world::{World, lease_wait, party};

/// The most rounds that anybody may lose.
const MOST: u32 = 10;

#[tokio::test]
async fn the_least_urgent_of_all_is_through_within_ten_colliding_rounds() -> Result<()> {
    let world = World::new().await?;
    let weak = 1;
    world.task(weak, 10).await?;
    let mut lost = 0;
    for round in 1..=MOST {
        // In each round another, more urgent one collides with it.
        let strong = u128::from(round) + 1;
        world.task(strong, 1).await?;
        world.take(weak, &["weak.ts"]).await??;
        world.take(strong, &["strong.ts"]).await??;
        assert_eq!(
            world.wait(&[lease_wait(strong, "weak.ts", weak)?]).await?,
            None
        );
        let found = world
            .wait(&[lease_wait(weak, "strong.ts", strong)?])
            .await?
            .context("no cycle")?;
        let victim = found.victim.context("nobody gave way")?;
        if victim == party(strong) {
            ensure!(world.held(strong).await?.is_empty());
            world.take(weak, &["strong.ts"]).await??;
            assert_eq!(lost, 3, "it is spared when it gave way three times");
            return Ok(());
        }
        lost += 1;
        world.gave_way(weak, round).await?;
        world.take(strong, &["weak.ts"]).await??;
        world.release(strong).await?;
        let mut changes = ChangeSet::new();
        for number in [weak, strong] {
            let waits = locks::waits_of(&world.store, &party(number)).await?;
            locks::stop_waiting(&mut changes, &waits);
        }
        world.store.commit(changes).await?;
    }
    anyhow::bail!("it lost {lost} rounds and is not through")
}
