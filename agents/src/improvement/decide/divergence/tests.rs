use super::*;

fn planned(action: Action, files: &[&str], state: TaskState) -> PlannedTask {
    PlannedTask {
        task: TaskId::parse("T-001").unwrap(),
        action,
        files: files.iter().map(ToString::to_string).collect(),
        text: "a table of habits".to_owned(),
        state,
        reason: "told so".to_owned(),
        skipped_by: None,
        elsewhere: false,
        granted: vec!["src/granted.rs".to_owned()],
    }
}

fn change(path: &str, kind: ChangeKind) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        kind,
    }
}

fn classes(plan: &[PlannedTask], actual: &[ChangedFile]) -> Vec<(DivergenceClass, String)> {
    divergences(plan, actual)
        .into_iter()
        .map(|one| (one.class, one.file.unwrap_or_default()))
        .collect()
}

#[test]
fn a_build_that_did_what_was_planned_does_not_differ() {
    let plan = [
        planned(Action::Create, &["a.sql"], TaskState::Complete),
        planned(Action::Update, &["b.rs", "c.rs"], TaskState::Complete),
        planned(Action::Delete, &["d.rs"], TaskState::Complete),
        planned(Action::Verify, &["a.sql"], TaskState::Complete),
    ];
    let actual = [
        change("a.sql", ChangeKind::Added),
        change("b.rs", ChangeKind::Modified),
        change("c.rs", ChangeKind::Added),
        change("d.rs", ChangeKind::Deleted),
        change("Cargo.lock", ChangeKind::Modified),
        change("ideas/habits/spec.md", ChangeKind::Added),
    ];
    assert_eq!(classes(&plan, &actual), []);
    assert_eq!(classes(&[], &[]), []);
}

#[test]
fn what_was_done_to_a_planned_file_is_compared_with_its_action() {
    use DivergenceClass::{Deviation, IntentionalSkip, MissedRequirement};
    let rows = [
        (Action::Create, Some(ChangeKind::Modified), Some(Deviation)),
        (Action::Create, Some(ChangeKind::Deleted), Some(Deviation)),
        (Action::Create, None, Some(MissedRequirement)),
        (Action::Update, Some(ChangeKind::Added), Some(Deviation)),
        (Action::Add, Some(ChangeKind::Added), None),
        (Action::Delete, Some(ChangeKind::Modified), Some(Deviation)),
        (Action::Delete, None, Some(MissedRequirement)),
    ];
    for (action, kind, expected) in rows {
        let actual: Vec<ChangedFile> = kind.map(|kind| change("a.sql", kind)).into_iter().collect();
        let found = classes(&[planned(action, &["a.sql"], TaskState::Complete)], &actual);
        let expected: Vec<_> = expected
            .map(|class| (class, "a.sql".to_owned()))
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{action:?} {kind:?}");
    }
    let two = planned(Action::Update, &["a.rs", "b.rs"], TaskState::Complete);
    let found = classes(&[two], &[change("a.rs", ChangeKind::Modified)]);
    assert_eq!(found, [(IntentionalSkip, "b.rs".to_owned())]);
}

#[test]
fn a_task_that_did_not_land_is_an_omission() {
    for (state, class) in [
        (TaskState::Skipped, DivergenceClass::IntentionalSkip),
        (TaskState::Failed, DivergenceClass::MissedRequirement),
        (TaskState::Blocked, DivergenceClass::MissedRequirement),
    ] {
        let found = divergences(&[planned(Action::Create, &["a.sql"], state)], &[]);
        assert_eq!((found.len(), found[0].class), (1, class));
        assert_eq!(found[0].planned, "`a.sql`, for a table of habits");
        assert_eq!(found[0].actual, format!("{state}: told so"));
    }
    let skipped = PlannedTask {
        reason: "nobody wants it".to_owned(),
        skipped_by: Some("ada".to_owned()),
        ..planned(Action::Create, &["a.sql"], TaskState::Skipped)
    };
    let found = divergences(&[skipped], &[]);
    assert_eq!(found[0].actual, "skipped by ada: nobody wants it");
}

#[test]
fn what_landed_in_a_build_before_is_not_compared_with_what_came_since() {
    let kept = PlannedTask {
        elsewhere: true,
        ..planned(Action::Update, &["a.rs", "b.rs"], TaskState::Complete)
    };
    // What the new task did to a file of one before is no addition either.
    let plan = [
        kept,
        planned(Action::Create, &["c.rs"], TaskState::Complete),
    ];
    let since = [
        change("c.rs", ChangeKind::Added),
        change("b.rs", ChangeKind::Modified),
    ];
    assert_eq!(classes(&plan, &since), []);
}

#[test]
fn what_was_planned_names_the_file_and_the_beginning_of_what_was_wanted() {
    let task = PlannedTask {
        text: "habits are kept; ".repeat(60),
        ..planned(Action::Update, &["a.rs", "b.rs"], TaskState::Complete)
    };
    let found = divergences(&[task], &[change("a.rs", ChangeKind::Modified)]);
    let told = &found[0].planned;
    assert!(told.starts_with("`b.rs`, for habits are kept;"), "{told}");
    assert!(told.chars().count() < 150 && told.ends_with('…'), "{told}");
}

#[test]
fn a_file_that_no_task_names_is_an_addition() {
    use DivergenceClass::{Enhancement, ScopeCreep};
    let plan = [planned(Action::Verify, &["a.sql"], TaskState::Complete)];
    for (path, class) in [
        ("src/extra.rs", ScopeCreep),
        ("src/granted.rs", Enhancement),
        ("tests/more.rs", Enhancement),
        ("src/list.test.ts", Enhancement),
        ("README.md", Enhancement),
    ] {
        let found = classes(&plan, &[change(path, ChangeKind::Added)]);
        assert_eq!(found, [(class, path.to_owned())]);
    }
}

#[test]
fn what_a_model_saw_takes_the_place_of_a_rule_about_the_same_file() {
    let plan = [
        planned(Action::Create, &["a.sql"], TaskState::Failed),
        planned(Action::Verify, &["v"], TaskState::Complete),
    ];
    let found = divergences(&plan, &[change("src/extra.rs", ChangeKind::Added)]);
    let seen = |file: &str| Divergence {
        class: DivergenceClass::Optimization,
        file: Some(file.to_owned()),
        task: None,
        requirement: None,
        planned: "a loop".to_owned(),
        actual: "a table".to_owned(),
    };
    let told = interpreted(found, vec![seen("src/extra.rs"), seen("a.sql")]);
    let classes: Vec<DivergenceClass> = told.iter().map(|one| one.class).collect();
    assert_eq!(
        classes,
        [
            DivergenceClass::MissedRequirement,
            DivergenceClass::Optimization,
            DivergenceClass::Optimization,
        ]
    );
}
