//! An idea is built by one specification: none is asked for, changed or approved beside that.

use std::time::Duration;

use ropewalk_config::Trigger;
use ropewalk_desk::ideas;
use ropewalk_desk::people::Person;
use ropewalk_desk::specifications::{self, ApproveError, RequestError};
use ropewalk_desk::views::idea::progress;
use ropewalk_orchestrator::questions::{self, AskOutcome, Deadlines, QuestionRequest};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::question::{About, Content};
use ropewalk_schemas::specification::{Complexity, Revision, Specification};
use ropewalk_schemas::{CommitId, Payload, Priority, QuestionId, Slug, SpecId};
use ropewalk_store::{ChangeSet, Query};

use super::answers::built;
use super::specification::{BRIEF, README, rule, small_plan};
use super::world::{IdeaWorld, templates, user};

/// A world in which a plan of `pets` waits for an approval.
async fn planned() -> (IdeaWorld, Slug, SpecId) {
    let world = IdeaWorld::new(&rule("idea: pets", &small_plan("Pets"))).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    (world, idea, spec)
}

/// Stores another specification of the same idea that waits as `spec` does: programs of before made such.
async fn twin_of(world: &IdeaWorld, spec: SpecId) -> SpecId {
    let id = SpecId(world.services.ids.next());
    let first = world.spec(spec).await;
    let twin = Specification {
        id,
        created_at: first.created_at + Duration::from_mins(1),
        ..first
    };
    let revision = Revision {
        spec: id,
        ..world.revision(spec, 1).await
    };
    let mut changes = ChangeSet::new();
    changes.insert(&twin);
    changes.insert(&revision);
    world.store().commit(changes).await.unwrap();
    id
}

async fn approve(world: &IdeaWorld, spec: SpecId) -> Result<(), ApproveError> {
    let hash = world.spec(spec).await.hash.unwrap();
    let (person, ann) = (world.person(), Person::alone(user("ann")));
    let approved = specifications::approve(&person, spec, &hash, &ann, Priority::DEFAULT);
    approved.await.map(drop)
}

/// Asks whether to build a specification, as its planner does.
async fn asked_to_build(world: &IdeaWorld, idea: &Slug, spec: SpecId) -> QuestionId {
    let values = [
        ("task_count", "3"),
        ("complexity", "low"),
        ("risks", "none"),
    ];
    let values = values.map(|(name, value)| (name, value.to_owned()));
    let draft = templates().render(Trigger::SpecComplete, &values.into());
    let asking = QuestionRequest {
        content: Some(Content::Revision {
            revision: 1,
            hash: world.spec(spec).await.hash.unwrap(),
        }),
        ..QuestionRequest::of(draft.unwrap(), About::Specification { spec }, Some(idea))
    };
    let mut changes = ChangeSet::new();
    let person = world.person();
    let asked = questions::ask(&mut changes, &person, &Deadlines::default(), asking).await;
    let AskOutcome::Open(asked) = asked.unwrap() else {
        panic!("it is asked anew")
    };
    world.store().commit(changes).await.unwrap();
    asked
}

async fn approvals(world: &IdeaWorld) -> usize {
    let events = world.payloads().await.into_iter();
    let approvals = events.filter(|payload| matches!(payload, Payload::SpecApproved(_)));
    approvals.count()
}

#[tokio::test]
async fn what_is_built_gets_no_second_specification_however_its_build_stands() {
    use BuildState::{Failed, Paused, Running, Stopped, Succeeded};
    for (state, is_landed) in [
        (Running, false),
        (Paused, false),
        (Stopped, false),
        (Failed, false),
        (Succeeded, false),
        (Succeeded, true),
    ] {
        let (world, idea, spec) = planned().await;
        let (person, build) = built(&world, spec, state).await;
        if is_landed {
            let found = world.store().get::<Build>(&build.to_string()).await;
            let found = found.unwrap().unwrap();
            let landed = Build {
                merged: CommitId::parse(&"a".repeat(40)).ok(),
                ..found.record.clone()
            };
            let mut changes = ChangeSet::new();
            changes.update(&found, &landed);
            world.store().commit(changes).await.unwrap();
        }
        let again = specifications::request(&person, &idea, &user("ann"), Complexity::Simple).await;
        let told = Words::of(&again.unwrap_err()).to_string();
        let revise = format!("for a change say `ropewalk spec revise {spec} WORDS`");
        assert!(told.contains(&revise), "{state}: {told}");
        let resume = format!("`ropewalk build resume {build}`");
        let rests = matches!(state, Paused | Stopped | Failed);
        assert_eq!(told.contains(&resume), rests, "{state}: {told}");
        // Whoever ends the conversation again is told the same.
        let next = ideas::next_step(world.store(), &idea).await.unwrap();
        assert!(next.starts_with(&revise), "{state}: {next}");
        let specs = world.store().count::<Specification>(Query::new()).await;
        assert_eq!(specs.unwrap(), 1, "{state}");
    }
}

#[tokio::test]
async fn a_plan_beside_the_one_that_is_built_is_approved_by_nobody_and_changed_by_nobody() {
    let (world, idea, spec) = planned().await;
    let twin = twin_of(&world, spec).await;
    let (person, _) = built(&world, spec, BuildState::Running).await;
    let refused = approve(&world, twin).await.unwrap_err();
    assert!(
        matches!(refused, ApproveError::Elsewhere { plan, .. } if plan.spec == spec),
        "{refused:?}"
    );
    let told = Words::of(&refused).to_string();
    for part in [
        format!("`{spec}`, whose build is running"),
        format!("`ropewalk spec revise {spec} WORDS`"),
        format!("`ropewalk spec reject {twin}`"),
    ] {
        assert!(told.contains(&part), "no {part}: {told}");
    }
    let changed = specifications::revise(&person, twin, &user("ann"), "Fewer words").await;
    assert!(
        matches!(changed, Err(RequestError::Built { plan, .. }) if plan.spec == spec),
        "{changed:?}"
    );
    // Wherever an idea is named, the plan that is built is meant.
    let again = specifications::request(&person, &idea, &user("ann"), Complexity::Simple).await;
    assert!(
        matches!(again, Err(RequestError::Built { plan, .. }) if plan.spec == spec),
        "{again:?}"
    );
    let next = ideas::next_step(world.store(), &idea).await.unwrap();
    assert!(next.contains(&format!("spec revise {spec} ")), "{next}");
    let counts = specifications::counting(world.store(), &idea).await;
    assert_eq!(counts.unwrap().map(|counts| counts.id), Some(spec));
    let progress = progress::of(world.store(), &idea).await.unwrap();
    let shown = progress.specification.map(|shown| shown.id);
    assert_eq!(shown, Some(spec));
    // A button that is pressed late approves no more, and says so.
    let asked = asked_to_build(&world, &idea, twin).await;
    questions::answer(&person, asked, "start", "ann", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let events = world.payloads().await;
    let refused = events.iter().find_map(|payload| match payload {
        Payload::SpecRevisionRefused(refused) => Some(refused.clone()),
        _ => None,
    });
    let refused = refused.unwrap();
    assert_eq!((refused.spec_id, refused.question_id), (twin, asked));
    assert!(refused.reason.contains(&told), "{}", refused.reason);
    assert_eq!(world.spec(twin).await.approval, None);
    assert_eq!(approvals(&world).await, 1);
}

#[tokio::test]
async fn of_two_plans_of_an_idea_that_are_approved_at_once_one_is() {
    let (world, _, spec) = planned().await;
    let twin = twin_of(&world, spec).await;
    let (one, other) = tokio::join!(approve(&world, spec), approve(&world, twin));
    assert_ne!(one.is_ok(), other.is_ok(), "{one:?}, {other:?}");
    assert_eq!(approvals(&world).await, 1);
}

#[tokio::test]
async fn a_change_of_what_is_built_is_a_revision_of_it_and_is_approved_as_such() {
    let (world, _, spec) = planned().await;
    let (person, _) = built(&world, spec, BuildState::Running).await;
    specifications::revise(&person, spec, &user("ann"), "Dogs alone")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    assert_eq!(world.spec(spec).await.revision, 2);
    approve(&world, spec).await.unwrap();
    assert_eq!(approvals(&world).await, 2);
}
