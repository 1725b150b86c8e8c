//! Whatever a document holds reads back as it was written.

use proptest::collection::vec;
use proptest::prelude::*;
use ropewalk_schemas::document::spec_md::{self, SpecHeader};
use ropewalk_schemas::document::tasks_md::{self, Progress, TasksPlan};
use ropewalk_schemas::specification::{
    Complexity, Document, FilePlan, Interface, NewPackage, Requirement, SpecState,
};
use ropewalk_schemas::task::{
    Action, Expectation, GotchaReference, RequirementLine, TaskBlock, TaskState, Validation,
};
use ropewalk_schemas::{KnowledgeId, RepoPath, RequirementId, Slug, SpecId, TaskId};
use uuid::Uuid;

use super::{EDITED, edited, rendered};

/// Any text, with what could be taken for structure more often than chance would have it.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => any::<String>(),
        4 => "[a-z ]{1,12}",
        1 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("&#10;".to_owned()),
        1 => Just("<br>".to_owned()),
        1 => Just("\n## Objective\n".to_owned()),
        1 => Just("\n```\n".to_owned()),
        1 => Just("````yaml\n".to_owned()),
        1 => Just("\n---\n".to_owned()),
        1 => Just(" | ".to_owned()),
        1 => Just("- ".to_owned()),
        1 => Just("\nReplaces: FR-1".to_owned()),
        1 => Just("\n  ".to_owned()),
        1 => Just(" #: '\"{}[]&*!%@`".to_owned()),
    ];
    // A document with a NUL is binary and refused as a whole.
    vec(piece, 0..5).prop_map(|pieces| pieces.concat().replace('\0', ""))
}

fn path() -> impl Strategy<Value = RepoPath> {
    hostile().prop_filter_map("names no file", |text| RepoPath::parse(&text).ok())
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let id = |number: u32| RequirementId::parse(&format!("FR-{number}")).ok();
    let texts = (hostile(), hostile(), hostile(), hostile());
    (1..99_u32, texts, prop::option::of(1..99_u32)).prop_filter_map(
        "no id",
        move |(number, (text, priority, acceptance, source), replaces)| {
            Some(Requirement {
                id: id(number)?,
                text,
                priority,
                acceptance,
                source,
                replaces: replaces.and_then(id),
            })
        },
    )
}

fn file() -> impl Strategy<Value = FilePlan> {
    // An empty owner is written like none.
    let owner = prop::option::of(hostile().prop_filter("empty", |text| !text.is_empty()));
    (path(), hostile(), owner).prop_map(|(path, purpose, owner)| FilePlan {
        path,
        purpose,
        owner,
    })
}

fn gotcha() -> impl Strategy<Value = GotchaReference> {
    let id = prop::option::of(any::<u128>().prop_map(|id| KnowledgeId(Uuid::from_u128(id))));
    (id, hostile()).prop_map(|(id, text)| GotchaReference { id, text })
}

fn interface() -> impl Strategy<Value = Interface> {
    let task = || {
        let name = "T-[0-9]{1,3}".prop_filter_map("no id", |id| TaskId::parse(&id).ok());
        name.boxed()
    };
    let tasks = (prop::option::of(task()), vec(task(), 0..3));
    (hostile(), tasks).prop_map(|(signature, (made_by, used_by))| Interface {
        signature,
        made_by,
        used_by,
    })
}

fn package() -> impl Strategy<Value = NewPackage> {
    (hostile(), hostile(), hostile()).prop_map(|(manager, name, purpose)| NewPackage {
        manager,
        name,
        purpose,
    })
}

fn document_of() -> impl Strategy<Value = Document> {
    let texts = || vec(hostile(), 0..4);
    let lists = (
        texts(),
        texts(),
        texts(),
        texts(),
        texts(),
        texts(),
        texts(),
        texts(),
    );
    let tables = (
        vec(requirement(), 0..3),
        vec(requirement(), 0..3),
        vec(file(), 0..3),
        vec(file(), 0..3),
        vec(file(), 0..3),
        vec(gotcha(), 0..3),
        vec(interface(), 0..3),
        vec(package(), 0..3),
    );
    (hostile(), hostile(), lists, tables).prop_map(|(title, objective, lists, tables)| Document {
        title,
        objective,
        context_read: lists.0,
        missing_inputs: lists.1,
        success_criteria: lists.2,
        out_of_scope: lists.3,
        interfaces: tables.6,
        data: lists.4,
        dependencies: lists.5,
        validation: lists.6,
        risks: lists.7,
        requirements: tables.0,
        quality: tables.1,
        new_files: tables.2,
        modified_files: tables.3,
        avoid_files: tables.4,
        gotchas: tables.5,
        new_packages: tables.7,
    })
}

fn task() -> impl Strategy<Value = TaskBlock> {
    let lists = (
        vec((prop::option::of(1..99_u32), hostile()), 0..3),
        vec(gotcha(), 0..3),
        prop::option::of(hostile()),
        prop::option::of(hostile()),
        prop::option::of(1..=10_u8),
        any::<bool>(),
        vec("[c-z]{4,9}", 0..12).prop_map(files),
        (prop::option::of(hostile()), vec(hostile(), 0..3)),
    );
    let expectation = prop_oneof![
        Just(Expectation::ExitZero),
        any::<u32>().prop_map(Expectation::Tests),
        "[a-z]{1,9}".prop_map(Expectation::Contains),
    ];
    (path(), hostile(), hostile(), expectation, lists).prop_map(
        |(file, phase, command, expected, lists)| TaskBlock {
            id: TaskId::try_from("T-1".to_owned()).unwrap_or_else(|_| unreachable!()),
            phase,
            title: lists.7.0,
            action: Action::Create,
            file,
            read_first: lists.6.iter().rev().take(2).cloned().collect(),
            leave_alone: lists.7.1,
            more_files: lists.6,
            requirements: lists
                .0
                .into_iter()
                .map(|(number, text)| RequirementLine {
                    id: number
                        .and_then(|number| RequirementId::parse(&format!("FR-{number}")).ok()),
                    text,
                })
                .collect(),
            gotchas: lists.1,
            validation: Validation {
                command: format!("run {command}"),
                expected,
            },
            preserves: lists.5,
            code_template: lists.2,
            depends_on: Vec::new(),
            priority: lists.4,
            estimate_minutes: None,
            notes: lists.3,
        },
    )
}

/// Names each file once; none is the primary one.
fn files(names: Vec<String>) -> Vec<RepoPath> {
    let names: std::collections::BTreeSet<String> = names.into_iter().collect();
    names
        .iter()
        .filter_map(|name| RepoPath::parse(&format!("more/{name}")).ok())
        .collect()
}

fn plan() -> impl Strategy<Value = Vec<TaskBlock>> {
    vec(task(), 0..4).prop_map(|mut tasks| {
        for index in 0..tasks.len() {
            tasks[index].id =
                TaskId::parse(&format!("T-{index}")).unwrap_or_else(|_| unreachable!());
            if index > 0 {
                tasks[index].depends_on = vec![tasks[index - 1].id.clone()];
            }
        }
        tasks
    })
}

proptest! {
    #[test]
    fn any_document_reads_back_as_it_was_written(document in document_of()) {
        let header = SpecHeader {
            id: SpecId(Uuid::from_u128(1)),
            idea: Slug::parse("habits").unwrap(),
            revision: 1,
            status: SpecState::Draft,
            complexity: Complexity::Medium,
            hash: None,
            approved_by: None,
            approved_at: None,
        };
        let text = spec_md::render(&header, &document);
        prop_assert_eq!(spec_md::parse(&text), Ok((header.clone(), document)));
        let (_, again) = spec_md::parse(&text).unwrap();
        prop_assert_eq!(spec_md::render(&header, &again), text);
    }

    #[test]
    fn any_plan_reads_back_as_it_was_written(tasks in plan(), title in hostile(), context in vec(hostile(), 0..3)) {
        let text = tasks_md::render(&TasksPlan {
            id: SpecId(Uuid::from_u128(9)),
            title: &title,
            spec_version: 3,
            context: &context,
            tasks: &tasks,
        });
        let document = tasks_md::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(document.blocks(), tasks);
        prop_assert_eq!(&document.header().title, &title);
        prop_assert_eq!(document.context(), context);
        prop_assert_eq!(document.to_string(), text);
    }

    #[test]
    fn any_bytes_are_read_or_refused_in_one_line(noise in hostile(), at in 0..EDITED.len()) {
        let mut text = edited();
        if text.is_char_boundary(at) {
            text.insert_str(at, &noise);
        }
        match tasks_md::parse(&text) {
            Ok(document) => prop_assert_eq!(&document.to_string(), &text),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error),
        }
        if let Err(error) = spec_md::parse(&text) {
            prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
        }
    }

    #[test]
    fn any_status_can_be_set_in_any_plan(tasks in plan(), state in 0..TaskState::ALL.len()) {
        let mut document = tasks_md::parse(&rendered(&tasks)).unwrap();
        let status = TaskState::ALL[state];
        for task in &tasks {
            let progress = Progress { status, ..Progress::PENDING };
            document.set_status(&task.id, &progress).unwrap();
            prop_assert_eq!(document.entry(&task.id).map(|entry| entry.progress.status), Some(status));
        }
        prop_assert_eq!(document.blocks(), tasks);
    }
}
