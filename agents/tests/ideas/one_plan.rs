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
use super::house::{House, templates, user};
use super::specification::{BRIEF, README, rule, small_plan};

/// A house in which a plan of `pets` waits for an approval.
async fn planned() -> (House, Slug, SpecId) {
    let house = House::new(&rule("idea: pets", &small_plan("Pets"))).await;
    let idea = house.idea("pets", &[README, BRIEF]).await;
    let spec = house.specify(&idea).await;
    (house, idea, spec)
}

/// Stores another specification of the same idea that waits as `spec` does: programs of before made such.
async fn twin_of(house: &House, spec: SpecId) -> SpecId {
    let id = SpecId(house.services.ids.next());
    let first = house.spec(spec).await;
    let twin = Specification {
        id,
        created_at: first.created_at + Duration::from_mins(1),
        ..first
    };
    let revision = Revision {
        spec: id,
        ..house.revision(spec, 1).await
    };
    let mut changes = ChangeSet::new();
    changes.insert(&twin);
    changes.insert(&revision);
    house.store().commit(changes).await.unwrap();
    id
}

async fn approve(house: &House, spec: SpecId) -> Result<(), ApproveError> {
    let hash = house.spec(spec).await.hash.unwrap();
    let (person, ann) = (house.person(), Person::alone(user("ann")));
    let approved = specifications::approve(&person, spec, &hash, &ann, Priority::DEFAULT);
    approved.await.map(drop)
}

/// Asks whether to build a specification, as its planner does.
async fn asked_to_build(house: &House, idea: &Slug, spec: SpecId) -> QuestionId {
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
            hash: house.spec(spec).await.hash.unwrap(),
        }),
        ..QuestionRequest::of(draft.unwrap(), About::Specification { spec }, Some(idea))
    };
    let mut changes = ChangeSet::new();
    let person = house.person();
    let asked = questions::ask(&mut changes, &person, &Deadlines::default(), asking).await;
    let AskOutcome::Open(asked) = asked.unwrap() else {
        panic!("it is asked anew")
    };
    house.store().commit(changes).await.unwrap();
    asked
}

async fn approvals(house: &House) -> usize {
    let events = house.payloads().await.into_iter();
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
        let (house, idea, spec) = planned().await;
        let (person, build) = built(&house, spec, state).await;
        if is_landed {
            let found = house.store().get::<Build>(&build.to_string()).await;
            let found = found.unwrap().unwrap();
            let landed = Build {
                merged: CommitId::parse(&"a".repeat(40)).ok(),
                ..found.record.clone()
            };
            let mut changes = ChangeSet::new();
            changes.update(&found, &landed);
            house.store().commit(changes).await.unwrap();
        }
        let again = specifications::request(&person, &idea, &user("ann"), Complexity::Simple).await;
        let told = Words::of(&again.unwrap_err()).to_string();
        let revise = format!("for a change say `ropewalk spec revise {spec} WORDS`");
        assert!(told.contains(&revise), "{state}: {told}");
        let resume = format!("`ropewalk build resume {build}`");
        let rests = matches!(state, Paused | Stopped | Failed);
        assert_eq!(told.contains(&resume), rests, "{state}: {told}");
        // Whoever ends the conversation again is told the same.
        let next = ideas::next_step(house.store(), &idea).await.unwrap();
        assert!(next.starts_with(&revise), "{state}: {next}");
        let specs = house.store().count::<Specification>(Query::new()).await;
        assert_eq!(specs.unwrap(), 1, "{state}");
    }
}

#[tokio::test]
async fn a_plan_beside_the_one_that_is_built_is_approved_by_nobody_and_changed_by_nobody() {
    let (house, idea, spec) = planned().await;
    let twin = twin_of(&house, spec).await;
    let (person, _) = built(&house, spec, BuildState::Running).await;
    let refused = approve(&house, twin).await.unwrap_err();
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
    let next = ideas::next_step(house.store(), &idea).await.unwrap();
    assert!(next.contains(&format!("spec revise {spec} ")), "{next}");
    let counts = specifications::counting(house.store(), &idea).await;
    assert_eq!(counts.unwrap().map(|counts| counts.id), Some(spec));
    let progress = progress::of(house.store(), &idea).await.unwrap();
    let shown = progress.specification.map(|shown| shown.id);
    assert_eq!(shown, Some(spec));
    // A button that is pressed late approves no more, and says so.
    let asked = asked_to_build(&house, &idea, twin).await;
    questions::answer(&person, asked, "start", "ann", "cli")
        .await
        .unwrap();
    assert_eq!(house.settle().await, []);
    let events = house.payloads().await;
    let refused = events.iter().find_map(|payload| match payload {
        Payload::SpecRevisionRefused(refused) => Some(refused.clone()),
        _ => None,
    });
    let refused = refused.unwrap();
    assert_eq!((refused.spec_id, refused.question_id), (twin, asked));
    assert!(refused.reason.contains(&told), "{}", refused.reason);
    assert_eq!(house.spec(twin).await.approval, None);
    assert_eq!(approvals(&house).await, 1);
}

#[tokio::test]
async fn of_two_plans_of_an_idea_that_are_approved_at_once_one_is() {
    let (house, _, spec) = planned().await;
    let twin = twin_of(&house, spec).await;
    let (one, other) = tokio::join!(approve(&house, spec), approve(&house, twin));
    assert_ne!(one.is_ok(), other.is_ok(), "{one:?}, {other:?}");
    assert_eq!(approvals(&house).await, 1);
}

#[tokio::test]
async fn a_change_of_what_is_built_is_a_revision_of_it_and_is_approved_as_such() {
    let (house, _, spec) = planned().await;
    let (person, _) = built(&house, spec, BuildState::Running).await;
    specifications::revise(&person, spec, &user("ann"), "Dogs alone")
        .await
        .unwrap();
    assert_eq!(house.settle().await, []);
    assert_eq!(house.spec(spec).await.revision, 2);
    approve(&house, spec).await.unwrap();
    assert_eq!(approvals(&house).await, 2);
}
