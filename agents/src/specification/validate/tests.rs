use ropewalk_schemas::specification::{FilePlan, Interface, NewPackage, Requirement};
use ropewalk_schemas::task::{Action, Expectation, RequirementLine, Validation};
use ropewalk_schemas::{RequirementId, TaskId};

use super::*;

/// A task that passes every check of a document made by [`document`].
pub(crate) fn task(id: &str, depends_on: &[&str]) -> TaskBlock {
    let file = RepoPath::parse(&format!("src/{id}.rs")).unwrap();
    let (id, check) = (TaskId::parse(id).unwrap(), Validation::passes("cargo test"));
    TaskBlock {
        requirements: vec![RequirementLine {
            id: Some(RequirementId::parse("FR-1").unwrap()),
            text: "it works".to_owned(),
        }],
        depends_on: depends_on
            .iter()
            .map(|id| TaskId::parse(id).unwrap())
            .collect(),
        ..TaskBlock::new(id, "types", Action::Create, file, check)
    }
}

fn requirement(id: &str) -> Requirement {
    Requirement {
        id: RequirementId::parse(id).unwrap(),
        text: "it works".to_owned(),
        priority: "must".to_owned(),
        acceptance: "it does".to_owned(),
        source: "planning/brief.md".to_owned(),
        replaces: None,
    }
}

fn document() -> Document {
    Document {
        title: "Habits".to_owned(),
        objective: "Record habits".to_owned(),
        success_criteria: vec!["they are kept".to_owned()],
        requirements: vec![requirement("FR-1")],
        ..Document::default()
    }
}

fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

fn plan(text: &str) -> FilePlan {
    FilePlan {
        path: path(text),
        purpose: "shared".to_owned(),
        owner: None,
    }
}

fn facts() -> Facts {
    Facts {
        existing: Some(BTreeSet::from([path("src/lib.rs").key()])),
        phases: vec!["types".to_owned()],
        complexity: None,
        shared: vec![SharedFile {
            path: path("src/lib.rs"),
            after: GlobPattern::parse("src/*.rs").unwrap(),
        }],
        installers: vec!["npm".to_owned()],
        migrations: BTreeMap::from([("db/migrations".to_owned(), BTreeSet::from([7]))]),
        ..Facts::default()
    }
}

#[test]
fn nothing_is_said_of_files_where_nobody_has_looked() {
    let update = TaskBlock {
        action: Action::Update,
        file: path("src/gone.rs"),
        ..task("A", &[])
    };
    let tasks = [update];
    let looked = check(&document(), &tasks, &facts()).errors;
    assert!(looked[0].contains("which is not there"), "{looked:?}");
    let nobody = Facts {
        existing: None,
        ..facts()
    };
    assert!(check(&document(), &tasks, &nobody).errors.is_empty());
}

#[test]
fn a_sound_specification_has_no_findings() {
    let update = TaskBlock {
        action: Action::Update,
        file: path("src/lib.rs"),
        ..task("B", &["A"])
    };
    let found = check(&document(), &[task("A", &[]), update], &facts());
    assert_eq!(found, Findings::default());
}

#[test]
fn what_waits_for_the_work_may_verify_a_requirement_again_or_alone() {
    let verify = TaskBlock {
        action: Action::Verify,
        ..task("B", &["A"])
    };
    let facts = Facts {
        shared: Vec::new(),
        ..facts()
    };
    let tasks = [task("A", &[]), verify.clone()];
    assert_eq!(check(&document(), &tasks, &facts), Findings::default());
    let whole = Document {
        requirements: vec![requirement("FR-1"), requirement("FR-2")],
        ..document()
    };
    let mut alone = verify;
    alone.requirements[0].id = Some(RequirementId::parse("FR-2").unwrap());
    let tasks = [task("A", &[]), alone];
    assert_eq!(check(&whole, &tasks, &facts), Findings::default());
}

#[test]
fn each_fault_of_a_document_is_named() {
    let good = document();
    let cases = [
        (
            Document {
                title: "Untitled".to_owned(),
                ..good.clone()
            },
            "Untitled",
        ),
        (
            Document {
                title: " unknown ".to_owned(),
                ..good.clone()
            },
            "unknown",
        ),
        (
            Document {
                title: String::new(),
                ..good.clone()
            },
            "title",
        ),
        (
            Document {
                objective: "TBD".to_owned(),
                ..good.clone()
            },
            "objective",
        ),
        (
            Document {
                requirements: Vec::new(),
                ..good.clone()
            },
            "requirements",
        ),
        (
            Document {
                requirements: vec![requirement("FR-1"), requirement("FR-2")],
                ..good.clone()
            },
            "`FR-2` is covered by no task",
        ),
        (
            Document {
                quality: vec![requirement("FR-1")],
                ..good.clone()
            },
            "`FR-1` is there twice",
        ),
        (
            Document {
                modified_files: vec![plan("src/main.rs")],
                ..good.clone()
            },
            "`src/main.rs` is to be modified",
        ),
        (
            Document {
                avoid_files: vec![plan("src/A.rs")],
                ..good
            },
            "`src/A.rs` is to be left alone",
        ),
    ];
    for (document, named) in cases {
        let errors = check(&document, &[task("A", &[])], &facts())
            .errors
            .join("; ");
        assert!(errors.contains(named), "{named}: {errors}");
    }
}

#[test]
fn an_acceptance_that_says_nothing_is_a_fault() {
    let vague = Requirement {
        acceptance: "TBD".to_owned(),
        ..requirement("FR-1")
    };
    let document = Document {
        requirements: vec![vague],
        ..document()
    };
    let found = check(&document, &[task("A", &[])], &facts()).errors;
    assert!(found[0].contains("`FR-1` has no acceptance"), "{found:?}");
}

#[test]
fn a_requirement_takes_the_place_of_one_of_the_revision_before() {
    let id = |text: &str| RequirementId::parse(text).unwrap();
    let replacing = |own: &str, old: &str| Requirement {
        replaces: Some(id(old)),
        ..requirement(own)
    };
    let revised = Facts {
        replaceable: BTreeSet::from([id("FR-1"), id("FR-2")]),
        ..facts()
    };
    let found = |requirements: &[Requirement], facts: &Facts| {
        let document = Document {
            requirements: requirements.to_vec(),
            ..document()
        };
        let errors = check(&document, &[task("A", &[])], facts).errors;
        let of_replacing = errors.into_iter().filter(|error| error.contains("replace"));
        of_replacing.collect::<Vec<_>>().join("; ")
    };
    let cases = [
        // Whether the one before is still there or not.
        (vec![requirement("FR-1"), replacing("FR-3", "FR-1")], ""),
        (
            vec![replacing("FR-3", "FR-1"), replacing("FR-4", "FR-2")],
            "",
        ),
        (vec![replacing("FR-1", "FR-2")], ""),
        (vec![replacing("FR-1", "FR-1")], "`FR-1` replaces itself"),
        (
            vec![replacing("FR-3", "FR-9")],
            "`FR-9`, which is not known: the revision before has FR-1, FR-2",
        ),
        (
            vec![replacing("FR-3", "FR-1"), replacing("FR-4", "FR-1")],
            "`FR-3` and `FR-4` both replace `FR-1`",
        ),
    ];
    for (requirements, expected) in cases {
        let found = found(&requirements, &revised);
        assert!(found.contains(expected), "{expected}: {found}");
        assert_eq!(found.is_empty(), expected.is_empty(), "{found}");
    }
    let first = found(&[replacing("FR-3", "FR-1")], &facts());
    assert!(first.contains("no revision before this one"), "{first}");
}

fn package(manager: &str) -> NewPackage {
    NewPackage {
        manager: manager.to_owned(),
        name: "serde".to_owned(),
        purpose: "to read".to_owned(),
    }
}

#[test]
fn a_package_that_somebody_may_install_is_no_fault() {
    let document = Document {
        new_packages: vec![package("NPM")],
        ..document()
    };
    assert_eq!(
        check(&document, &[task("A", &[])], &facts()).errors,
        [""; 0]
    );
    let nobody = Facts {
        installers: Vec::new(),
        ..facts()
    };
    let elsewhere = Document {
        new_packages: vec![package("cargo")],
        ..document.clone()
    };
    for (document, facts, named) in [
        (&document, &nobody, "no package manager may install"),
        (
            &elsewhere,
            &facts(),
            "`serde` of `cargo` cannot be had: only npm",
        ),
    ] {
        let found = check(document, &[task("A", &[])], facts).errors;
        assert!(found[0].contains(named), "{found:?}");
    }
}

#[test]
fn an_interface_names_tasks_that_follow_each_other() {
    let with = |made_by: &str, used_by: &[&str]| Document {
        interfaces: vec![Interface {
            signature: "fn add(one: u8)".to_owned(),
            made_by: TaskId::parse(made_by).ok(),
            used_by: used_by
                .iter()
                .map(|id| TaskId::parse(id).unwrap())
                .collect(),
        }],
        ..document()
    };
    let tasks = [task("A", &[]), task("B", &["A"]), task("C", &["B"])];
    let faults = |document: &Document| check(document, &tasks, &facts()).errors.join("; ");
    assert_eq!(faults(&with("A", &["B", "C", "A"])), "");
    assert_eq!(faults(&with("", &["B"])), "");
    assert!(
        faults(&with("B", &["A"]))
            .contains("task `A` uses `fn add(one: u8)`, which task `B` makes")
    );
    for (made_by, used_by) in [("Z", "A"), ("A", "Z")] {
        let found = faults(&with(made_by, &[used_by]));
        assert!(
            found.contains("names the task `Z`, which is not there; name a task of this plan"),
            "{found}"
        );
    }
}

/// Checks each list of tasks and looks for what must be said of it.
fn check_errors(cases: Vec<(Vec<TaskBlock>, &str)>) {
    for (tasks, named) in cases {
        let errors = check(&document(), &tasks, &facts()).errors.join("; ");
        assert!(errors.contains(named), "{named}: {errors}");
    }
}

#[test]
fn each_fault_of_a_task_is_named() {
    let with = |change: fn(&mut TaskBlock)| {
        let mut task = task("A", &[]);
        change(&mut task);
        vec![task]
    };
    check_errors(vec![
        (
            with(|task| task.more_files = vec![path("SRC/a.rs")]),
            "twice",
        ),
        (
            with(|task| task.requirements[0].id = RequirementId::parse("FR-9").ok()),
            "`FR-9`, which is not there",
        ),
        (
            with(|task| task.file = path("src/LIB.rs")),
            "make it an UPDATE",
        ),
        (
            with(|task| task.file = path("db/migrations/007_x.sql")),
            "number 7 is taken",
        ),
        (with(|task| task.priority = Some(11)), "1 to 10"),
        (
            with(|task| task.validation.command = " ".to_owned()),
            "no validation command",
        ),
        (
            with(|task| task.validation.command = "echo '```'".to_owned()),
            "three backticks",
        ),
        (
            with(|task| task.title = Some("one\ntwo".to_owned())),
            "has several lines",
        ),
        (
            with(|task| task.preserves = true),
            "nothing can show requirement `FR-1`",
        ),
        (
            with(|task| task.action = Action::Verify),
            "its tasks make nothing",
        ),
        (
            with(|task| task.read_first = vec![path("src/none.rs")]),
            "is to read `src/none.rs` first, which is not there",
        ),
        (
            with(|task| (task.action, task.file) = (Action::Delete, path("src/none.rs"))),
            "deletes `src/none.rs`, which is not there",
        ),
    ]);
}

#[test]
fn each_fault_between_tasks_is_named() {
    let same_file = TaskBlock {
        file: path("src/A.rs"),
        ..task("B", &[])
    };
    let update = TaskBlock {
        action: Action::Update,
        file: path("src/A.rs"),
        ..task("C", &[])
    };
    check_errors(vec![
        (vec![], "`tasks` is empty"),
        (vec![task("A", &[]), task("A", &[])], "`A` is there twice"),
        (vec![task("A", &["A"])], "`A` depends on itself"),
        (vec![task("A", &["Z"])], "`Z`, which is not there"),
        (
            vec![task("A", &["B"]), task("B", &["A"])],
            "`A`, `B` depend on each other",
        ),
        (vec![task("A", &[]), same_file], "both create"),
        (vec![task("A", &[]), update.clone()], "updates `src/A.rs`"),
    ]);
    let after = TaskBlock {
        depends_on: vec![TaskId::parse("B").unwrap()],
        read_first: vec![path("src/A.rs")],
        ..update
    };
    let through_another = [task("A", &[]), task("B", &["A"]), after];
    assert_eq!(
        check(&document(), &through_another, &facts()).errors,
        [""; 0]
    );
}

#[test]
fn a_file_that_no_task_can_write_is_a_fault_of_the_plan() {
    let facts = Facts {
        links: BTreeMap::from([
            (path("latest.rs").key(), "src/lib.rs".to_owned()),
            (path("Old").key(), "src".to_owned()),
        ]),
        idea_folder: Some(path("ideas/habits")),
        ..facts()
    };
    for (file, named) in [
        ("-rf", "take for an option"),
        ("ideas/habits/build/tasks.md", "belongs to the plan itself"),
        ("Ideas/habits/README.md", "belongs to the plan itself"),
        (
            "latest.rs",
            "`latest.rs` is a symbolic link to `src/lib.rs`",
        ),
        ("old/new.rs", "`old` is a symbolic link to `src`"),
    ] {
        for block in [
            TaskBlock {
                file: path(file),
                ..task("A", &[])
            },
            TaskBlock {
                more_files: vec![path(file)],
                ..task("A", &[])
            },
        ] {
            let errors = check(&document(), &[block], &facts).errors.join("; ");
            assert!(errors.contains(named), "{file}: {errors}");
        }
    }
    for file in [
        "docs/-rf",
        "ideas/other.md",
        "older/new.rs",
        "src/latest.rs",
    ] {
        let block = TaskBlock {
            file: path(file),
            ..task("A", &[])
        };
        assert_eq!(
            check(&document(), &[block], &facts).errors,
            [""; 0],
            "{file}"
        );
    }
}

#[test]
fn a_dependency_that_is_misspelt_is_told_with_what_was_meant() {
    for (written, meant) in [
        ("T-14", "did you mean `T-014`?"),
        ("t014", "did you mean `T-014`?"),
        ("T_0014", "did you mean `T-014`?"),
        ("T-140", "name a task of this plan"),
    ] {
        let tasks = [task("T-014", &[]), task("T-015", &[written])];
        let errors = check(&document(), &tasks, &facts()).errors.join("; ");
        assert!(errors.contains(meant), "{written}: {errors}");
    }
}

#[test]
fn what_only_people_need_to_know_is_a_warning() {
    let tasks = [
        TaskBlock {
            phase: "odd".to_owned(),
            estimate_minutes: Some(61),
            requirements: Vec::new(),
            ..task("A", &[])
        },
        TaskBlock {
            more_files: (1..9)
                .map(|number| path(&format!("src/{number}.rs")))
                .collect(),
            ..task("B", &[])
        },
    ];
    let others = ["C", "D", "E", "F", "G", "H", "I"].map(|id| task(id, &[]));
    let tasks: Vec<TaskBlock> = tasks.into_iter().chain(others).collect();
    let facts = Facts {
        complexity: Some(Complexity::Simple),
        ..facts()
    };
    let document = Document {
        quality: vec![requirement("NFR-1")],
        ..document()
    };
    let found = check(&document, &tasks, &facts);
    assert_eq!(found.errors, Vec::<String>::new());
    let warnings = found.warnings.join("; ");
    for named in [
        "`odd`",
        "more than an hour",
        "no requirement",
        "no task is for `NFR-1`",
        "9 tasks were planned; 8 is the most",
        "task `B` has 9 files",
        "shared `src/lib.rs`",
    ] {
        assert!(warnings.contains(named), "{named}: {warnings}");
    }
}

#[test]
fn a_check_that_nobody_could_judge_is_a_fault_of_the_plan() {
    let with = |command: &str, expected: Expectation| TaskBlock {
        validation: Validation {
            command: command.to_owned(),
            expected,
        },
        ..task("A", &[])
    };
    let update = TaskBlock {
        action: Action::Update,
        file: path("src/lib.rs"),
        ..task("B", &["A"])
    };
    let faults = |block: &TaskBlock, facts: &Facts| {
        check(&document(), &[block.clone(), update.clone()], facts).errors
    };
    let uncountable = with("cargo check --offline", Expectation::Tests(1));
    let found = faults(&uncountable, &facts());
    assert!(found[0].contains("reports none"), "{found:?}");
    let own = Facts {
        own_runner: true,
        ..facts()
    };
    assert_eq!(faults(&uncountable, &own), [""; 0]);
    assert_eq!(
        faults(&with("sh tests/all.sh", Expectation::Tests(1)), &facts()),
        [""; 0]
    );
    let piped = with("cargo test | tail -1", Expectation::ExitZero);
    assert_eq!(faults(&piped, &facts()), [""; 0]);
    let plain = Facts {
        no_pipelines: true,
        ..facts()
    };
    let found = faults(&piped, &plain);
    assert!(found[0].contains("needs bash"), "{found:?}");
}

#[test]
fn more_slices_than_a_small_idea_needs_are_a_warning_unless_they_have_a_reason() {
    let plain = |count: usize| -> Vec<TaskBlock> {
        let ids = ["A", "B", "C", "D", "E"];
        ids[..count].iter().map(|id| task(id, &[])).collect()
    };
    let mut reasoned = plain(5);
    for task in &mut reasoned[3..] {
        task.notes = Some("for another owner".to_owned());
    }
    for (tasks, small, expected) in [
        (plain(3), true, 0),
        (plain(4), true, 1),
        (plain(4), false, 0),
        (reasoned, true, 0),
    ] {
        let facts = Facts { small, ..facts() };
        let found = check(&document(), &tasks, &facts);
        assert_eq!(found.errors, [""; 0]);
        let told = found.warnings.iter();
        let told = told.filter(|warning| warning.contains("for a small idea"));
        assert_eq!(told.count(), expected, "{found:?}");
    }
    let usual = [true, false].map(|small| usual_tasks(Complexity::Medium, small));
    assert_eq!(usual, [3, 15]);
}
