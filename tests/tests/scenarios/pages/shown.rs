//! Decisions on a page about what it shows, while something newer comes.

use anyhow::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::specification::Specification;
use ropewalk_store::Query;

use crate::pages::{Walk, serve, specified};
use crate::picture::{git, store};
use crate::project::Project;

#[tokio::test]
async fn a_yes_on_a_page_is_sent_for_what_was_shown_and_lands_the_build_where_that_is_newest()
-> anyhow::Result<()> {
    let project = Project::new()?;
    let spec = specified(&project)?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    let mut walk = Walk::begin("shown.cjs", &[&link, &spec])?;
    let repository = project.repository();
    for _ in 0..2 {
        walk.asks("commit")?;
        let commit = ["commit", "-q", "--allow-empty", "-m", "another change"];
        git(&repository, &commit)?;
        walk.answer("it is there")?;
    }
    let newest = git(&repository, &["rev-parse", "main"])?;
    walk.end()?;
    drop(up);
    let store = store(project.path()).await?;
    let specification = store.list::<Specification>(Query::new()).await?.remove(0);
    let approval = specification.approval.as_ref().context("no approval")?;
    assert_eq!(approval.revision, 2);
    let [build] = store
        .list::<Build>(Query::new())
        .await?
        .try_into()
        .ok()
        .context("one build")?;
    let merged = build.merged.as_ref().context("nothing was merged")?;
    assert_eq!(git(&repository, &["rev-parse", "main"])?, merged.as_str());
    assert_eq!(git(&repository, &["rev-parse", "main^1"])?, newest);
    assert_eq!(
        git(&repository, &["show", "main:parts/12.txt"])?,
        "part 12 is ready"
    );
    Ok(())
}
