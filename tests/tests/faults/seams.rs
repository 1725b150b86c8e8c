//! Crashes right before and right after everything that another start must agree with.

use crate::trial::approved;

/// Places and passings, each in a process of its own, one after the other in one build.
const SEAMS: &[&str] = &[
    "store.subscribe.before:1",
    "store.subscribe.after:2",
    "store.commit.before:1",
    "store.commit.after:2",
    "store.commit.before:8",
    "workspace.write.between:1",
    "build.preserve.before:1",
    "build.recover.slots:1",
    "build.recover.attempts:1",
    "build.recover.locks:1",
    "build.preserve.after:1",
    "build.landing.before:1",
    "build.landing.after:1",
    "build.publish.before:1",
    "build.publish.after:1",
    "store.commit.after:5",
    "store.commit.before:13",
    "store.commit.after:13",
    "build.preserve.after:2",
    "store.commit.before:21",
    "store.commit.after:34",
];

#[tokio::test]
async fn a_build_survives_a_crash_at_every_seam() -> anyhow::Result<()> {
    let project = approved()?;
    for seam in SEAMS {
        project.crash_at(seam, &[]).await?;
    }
    project.finish_and_check().await
}
