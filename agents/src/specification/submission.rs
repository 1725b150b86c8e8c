//! Reads what the model submits: a plan, or a question that has to be answered first.

mod draft;
mod fields;
mod form;
mod overlay;
mod part;

use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::question::QuestionKind;
use ropewalk_schemas::specification::{Document, DryRunCount, Requirement};
use ropewalk_schemas::task::TaskBlock;
use serde_json::Value;

use super::validate::{self, Facts};
use crate::model_question::ModelQuestion;

pub use draft::Draft;
pub use form::{Form, schema, shown};

/// The most bytes of a whole plan: twice this still fits into one record.
const PLAN_BYTES: usize = 400 * 1024;
/// A question with so many options is a choice between approaches.
const APPROACHES: usize = 2;
/// So many faults are told at once, which is more than a plan of any size has by mistake.
const FAULTS: usize = 100;
/// So much of one of them is told, in bytes.
const FAULT_BYTES: usize = 2_000;

/// What the model submitted.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSubmission {
    /// A plan, checked, with what people should know of it, and perhaps a question that need not be waited for.
    Plan(Box<Plan>),
    /// A question that has to be answered before a plan can be made.
    Question(ModelQuestion),
}

/// A plan that passed its checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The text.
    pub document: Document,
    /// The tasks, as written.
    pub tasks: Vec<TaskBlock>,
    /// What people should know.
    pub warnings: Vec<String>,
    /// A question that need not be waited for.
    pub question: Option<ModelQuestion>,
    /// How its checks went on the commit that it begins at, once they were tried.
    pub dry_run: Option<DryRunCount>,
    /// Why it does not fit together, for the model; nothing where it does.
    pub faults: Vec<String>,
}

/// Reads and checks a submission; the errors are for the model, all at once.
pub fn read(value: &Value, facts: &Facts) -> Result<ModelSubmission, Vec<String>> {
    match read_with_faults(value, facts)? {
        ModelSubmission::Plan(plan) if !plan.faults.is_empty() => Err(plan.faults),
        fitting => Ok(fitting),
    }
}

/// Reads a submission, also a plan that does not fit together: its checks can be tried before all of it is told.
pub fn read_with_faults(value: &Value, facts: &Facts) -> Result<ModelSubmission, Vec<String>> {
    read_whole(value, facts).map_err(|faults| bounded(&faults))
}

/// Says to the model what people are told of a plan: none of it has to be mended, but who plans may know better.
pub fn advice(warnings: &[String]) -> Option<String> {
    let told = warnings.join("; ");
    (!told.is_empty())
        .then(|| format!("no fault, and may stay where there is a reason for it: {told}"))
}

/// Leaves out what is more than anybody reads.
fn bounded(faults: &[String]) -> Vec<String> {
    let more = faults.len().saturating_sub(FAULTS);
    let told = faults.iter().take(FAULTS);
    let told = told.map(|fault| clip::ends(fault, FAULT_BYTES, Weight::Even).into_owned());
    let rest = (more > 0).then(|| format!("{more} more are told once these are mended"));
    told.chain(rest).collect()
}

fn read_whole(value: &Value, facts: &Facts) -> Result<ModelSubmission, Vec<String>> {
    let mut errors = Vec::new();
    let question = question(value, &mut errors);
    match question {
        Some(question) if question.kind == QuestionKind::Blocking => match errors.as_slice() {
            [] => Ok(ModelSubmission::Question(with_trigger(question))),
            _ => Err(errors),
        },
        question => {
            plan(value, facts, question, errors).map(|plan| ModelSubmission::Plan(Box::new(plan)))
        }
    }
}

fn question(value: &Value, errors: &mut Vec<String>) -> Option<ModelQuestion> {
    let question = value.get("question").filter(|value| !value.is_null())?;
    let read = errors.len();
    let question: ModelQuestion = part::read(question, &part::of_question(), "question", errors)?;
    if errors.len() == read {
        let problem = question.problem();
        errors.extend(problem.map(|problem| format!("`question` {problem}")));
    }
    Some(question)
}

fn plan(
    value: &Value,
    facts: &Facts,
    question: Option<ModelQuestion>,
    mut errors: Vec<String>,
) -> Result<Plan, Vec<String>> {
    if value.to_string().len() > PLAN_BYTES {
        return Err(vec![format!(
            "the specification has more than {PLAN_BYTES} bytes; say it shorter"
        )]);
    }
    errors.extend(misplaced(value));
    let document: Option<Document> = match &value["document"] {
        Value::Null => {
            errors.push(
                "`document` is missing; submit it with `tasks`, or a blocking `question`"
                    .to_owned(),
            );
            None
        }
        document => part::read(document, &part::of_document(), "document", &mut errors),
    };
    let document = document.map(|document| titled(document, facts));
    let blocks = value["tasks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut tasks = Vec::with_capacity(blocks.len());
    errors.extend(unread(
        "document",
        &value["document"],
        &schema::<Document>(),
    ));
    let task = schema::<TaskBlock>();
    let stand_in = part::of_task();
    for (index, block) in blocks.iter().enumerate() {
        let name = block["id"]
            .as_str()
            .map_or_else(|| format!("tasks[{index}]"), |id| format!("task {id}"));
        errors.extend(unread(&name, block, &task));
        let read: Option<TaskBlock> = part::read(block, &stand_in, &name, &mut errors);
        tasks.extend(read.map(|task| in_full(task, document.as_ref())));
    }
    let unchosen = validate::unchosen(value["built_with"].as_str(), &tasks, facts);
    let document = match document {
        Some(document) if errors.is_empty() => document,
        document => {
            let parts = validate::check_parts(document.as_ref(), &tasks, facts);
            let of_parts = parts.errors.into_iter();
            let is_theirs = |told: &String| !told.contains(part::UNREAD);
            errors.extend(of_parts.filter(is_theirs));
            errors.extend(unchosen);
            let warnings: Vec<String> = parts.warnings.into_iter().filter(is_theirs).collect();
            errors.extend(advice(&warnings));
            return Err(errors);
        }
    };
    let mut found = validate::check(&document, &tasks, facts);
    found.errors.extend(unchosen);
    Ok(Plan {
        document,
        tasks,
        warnings: found.warnings,
        question,
        dry_run: None,
        faults: bounded(&found.errors),
    })
}

/// Says what of a submission stands where nobody would read it, beside document and tasks or in their place.
fn misplaced(value: &Value) -> Vec<String> {
    type Kind = fn(&Value) -> bool;
    let kinds: [(&str, Kind, &str); 4] = [
        ("amends", Value::is_boolean, "write `true`, or leave it out"),
        ("dropped", Value::is_array, "write a list of ids"),
        (
            "tasks",
            Value::is_array,
            "write a list, one item for each task",
        ),
        ("built_with", Value::is_string, "write a text"),
    ];
    let unknown = fields::unknown_here(value, &schema::<Form>()).into_iter();
    let unknown = unknown.map(|field| {
        format!("`{field}`: there is no such field; a plan stands in `document` and `tasks`")
    });
    let wrong = kinds.into_iter().filter(|(name, is_kind, _)| {
        let given = &value[*name];
        !given.is_null() && !is_kind(given)
    });
    let wrong = wrong.map(|(name, _, mend)| format!("`{name}` is none that can be read; {mend}"));
    unknown.chain(wrong).collect()
}

/// Gives a specification without a title that of the idea.
fn titled(document: Document, facts: &Facts) -> Document {
    let title = if document.title.trim().is_empty() {
        facts.title.clone()
    } else {
        document.title
    };
    Document { title, ..document }
}

/// Fills in what a task leaves to the specification: the text of a requirement that it names by its id.
fn in_full(mut task: TaskBlock, document: Option<&Document>) -> TaskBlock {
    let known: Vec<&Requirement> = document
        .map(Document::all_requirements)
        .into_iter()
        .flatten()
        .collect();
    for line in &mut task.requirements {
        let whole = known.iter().find(|one| line.id.as_ref() == Some(&one.id));
        if let (true, Some(whole)) = (line.text.trim().is_empty(), whole) {
            line.text.clone_from(&whole.text);
        }
    }
    task
}

/// A model that names no trigger either chooses between approaches or asks what is meant.
fn with_trigger(question: ModelQuestion) -> ModelQuestion {
    let trigger = if question.options.len() >= APPROACHES {
        "multiple_architectures"
    } else {
        "requirement_ambiguous"
    };
    ModelQuestion {
        trigger: question.trigger.or_else(|| Some(trigger.to_owned())),
        ..question
    }
}

/// Says which fields nobody would read; dropped in silence, what they say would be lost.
fn unread(name: &str, value: &Value, schema: &Value) -> Vec<String> {
    let unknown = fields::unknown(value, schema).into_iter();
    let told = |field| {
        format!(
            "`{name}`, `{field}`: there is no such field; say it in one that there is, such as `notes` of a task"
        )
    };
    unknown.map(told).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(super) fn whole() -> Value {
        json!({
            "document": {
                "title": "Habits", "objective": "Record habits", "success_criteria": ["kept"],
                "requirements": [{ "id": "FR-1", "text": "t", "priority": "must", "acceptance": "a", "source": "s" }],
            },
            "tasks": [{
                "id": "T-001", "phase": "types", "action": "CREATE", "file": "src/a.rs",
                "requirements": [{ "id": "FR-1" }],
                "validation": { "command": "cargo test", "expected": "tests ≥ 1" },
            }],
        })
    }

    #[test]
    fn a_plan_or_a_blocking_question_is_taken() {
        let Ok(ModelSubmission::Plan(plan)) = read(&whole(), &Facts::default()) else {
            panic!("a plan is expected")
        };
        assert_eq!(plan.tasks[0].requirements[0].text, "t", "said once");
        let question = |options: Value| json!({ "question": { "type": "blocking", "text": "A or B?", "options": options } });
        for (options, trigger) in [
            (
                json!([{ "label": "A" }, { "label": "B" }]),
                "multiple_architectures",
            ),
            (json!([]), "requirement_ambiguous"),
        ] {
            let Ok(ModelSubmission::Question(asked)) = read(&question(options), &Facts::default())
            else {
                panic!("a question is expected")
            };
            assert_eq!(asked.trigger.as_deref(), Some(trigger));
        }
        let mut both = whole();
        both["question"] = json!({ "type": "educational", "text": "Did you know?" });
        let Ok(ModelSubmission::Plan(plan)) = read(&both, &Facts::default()) else {
            panic!("a plan is expected")
        };
        assert!(plan.question.is_some());
    }

    #[test]
    fn what_goes_without_saying_need_not_be_said() {
        let mut brief = whole();
        brief["document"].as_object_mut().unwrap().remove("title");
        let requirement = brief["document"]["requirements"][0].as_object_mut();
        requirement
            .unwrap()
            .retain(|name, _| !["priority", "source"].contains(&name.as_str()));
        brief["tasks"][0].as_object_mut().unwrap().remove("phase");
        let facts = Facts {
            title: "Habits, recorded".to_owned(),
            phases: vec!["types".to_owned()],
            ..Facts::default()
        };
        let Ok(ModelSubmission::Plan(plan)) = read(&brief, &facts) else {
            panic!("a plan is expected")
        };
        assert_eq!(plan.document.title, "Habits, recorded");
        let requirement = &plan.document.requirements[0];
        assert_eq!(
            (&*requirement.priority, &*requirement.source),
            ("must", crate::idea_folder::BRIEF)
        );
        assert_eq!(plan.tasks[0].phase, "core");
        assert_eq!(plan.warnings, Vec::<String>::new());
        brief["document"]
            .as_object_mut()
            .unwrap()
            .remove("objective");
        let refused = read(&brief, &facts).unwrap_err().join("\n");
        assert!(
            refused.contains("`document.objective` says nothing"),
            "{refused}"
        );
    }

    #[test]
    fn every_fault_is_told_at_once_and_where_it_is() {
        let mut bad = whole();
        bad["document"]["title"] = json!(3);
        bad["tasks"][0]["file"] = json!("../escape");
        bad["tasks"].as_array_mut().unwrap().push(json!({
            "id": "T-002", "phase": "types", "action": "CREATE", "file": "b",
            "validation": { "command": "x", "expected": "green" },
        }));
        bad["tasks"].as_array_mut().unwrap().push(json!({
            "id": "T-003", "phase": "types", "action": "CREATE", "file": "c", "priority": 11,
            "validation": { "command": " ", "expected": "exit 0" },
        }));
        bad["tasks"].as_array_mut().unwrap().extend([
            json!({
                "id": "T-004", "phase": "types", "action": "INVENT", "file": "d",
                "validation": { "command": "x", "expected": "exit 0" },
            }),
            json!({
                "id": "T-005", "phase": "types", "action": "CREATE",
                "validation": { "command": "x", "expected": "exit 0" },
            }),
        ]);
        bad["document"]["budget"] = json!("a day");
        bad["document"]["missing_inputs"] = json!(["market.md: nobody sells it"]);
        bad["document"]["context_read"] = json!([]);
        bad["tasks"][0]["gotchas"] = json!([{ "text": "months differ" }]);
        bad["tasks"][0]["owner"] = json!("ada");
        bad["tasks"][1]["validation"]["timeout"] = json!(5);
        bad["question"] = json!({ "type": "educational", "text": " " });
        let errors = read(&bad, &Facts::default()).unwrap_err().join("\n");
        for named in [
            "`document`, `title`",
            "`task T-001`, `file`",
            "`task T-002`, `validation.expected`",
            "tests >= N",
            "`T-003` has a priority",
            "`T-003` has no validation command",
            "`question` has no `text`",
            "`document`, `budget`: there is no such field",
            "`document`, `missing_inputs`: there is no such field",
            "`task T-001`, `gotchas`: there is no such field",
            "`task T-001`, `owner`: there is no such field",
            "`task T-002`, `validation.timeout`: there is no such field",
            "expected a string; write it as the schema of this call has it",
            "unknown variant `INVENT`, expected one of `CREATE`, ",
            "; write one of those",
            "missing field `file`; add it",
        ] {
            assert!(errors.contains(named), "{named}: {errors}");
        }
        for none in ["`.`", part::UNREAD] {
            assert!(!errors.contains(none), "{errors}");
        }
        assert!(
            !errors.contains("context_read"),
            "nothing of it is lost: {errors}"
        );
        let empty = read(&json!({}), &Facts::default()).unwrap_err().join("\n");
        assert!(empty.contains("`document` is missing"));
    }

    #[test]
    fn what_a_program_wrote_without_end_is_told_within_bounds() {
        let mut endless = whole();
        endless["tasks"] = json!(vec!["no task"; 5_000]);
        endless["document"]["y".repeat(50_000)] = json!(1);
        let faults = read(&endless, &Facts::default()).unwrap_err();
        assert_eq!(faults.len(), FAULTS + 1);
        assert!(faults.iter().all(|fault| fault.len() <= FAULT_BYTES));
        let last = faults.last().unwrap();
        assert!(
            last.ends_with("more are told once these are mended"),
            "{last}"
        );
    }

    #[test]
    fn the_schema_names_every_field_of_a_task() {
        let schema = schema::<Form>().to_string();
        for field in [
            "depends_on",
            "more_files",
            "validation",
            "expected",
            "acceptance",
            "allowFreeText",
        ] {
            assert!(schema.contains(field), "{field}");
        }
        for ours in ["gotchas", "missing_inputs", "context_read", "owner", "$ref"] {
            assert!(!schema.contains(ours), "{ours}");
        }
    }
}
