//! Describes the resources as OpenAPI: paths by what stands beside the handlers, schemas by the types themselves.

use ropewalk_desk::builds::landing::LandingView;
use ropewalk_desk::people::Person;
use ropewalk_desk::views::build::{BuildRow, BuildView};
use ropewalk_desk::views::dead_letter::{DeadLetterRow, DeadLetterView};
use ropewalk_desk::views::event::{EventView, TimelineEvent};
use ropewalk_desk::views::idea::{IdeaRow, IdeaView};
use ropewalk_desk::views::knowledge::KnowledgeView;
use ropewalk_desk::views::lines::LinesView;
use ropewalk_desk::views::notice::NoticeRow;
use ropewalk_desk::views::question::QuestionView;
use ropewalk_desk::views::review::ReviewView;
use ropewalk_desk::views::specification::{
    RevisionDifference, SpecificationRow, SpecificationView,
};
use ropewalk_desk::views::task::TaskView;
use ropewalk_desk::views::usage::UsageRow;
use ropewalk_desk::views::wait::{WaitRow, WaitsView};
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::job_event::Passage;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::review::Review;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use crate::api::{
    attachments, build_tasks, builds, events, halt, ideas, knowledge, lines, profile, questions,
    running, specifications,
};
use crate::page::Page;
use crate::problem;

/// What may be said to any request.
const PROBLEMS: [(&str, &str); 12] = [
    ("400", "What was asked cannot be understood."),
    ("401", "Nobody is logged in."),
    ("403", "This person, host, origin or page may not."),
    ("404", "Nothing has this id."),
    ("408", "The body did not come in time."),
    ("409", "What is there now stands against it."),
    (
        "413",
        "The body is too large, or what it would be kept with is.",
    ),
    ("415", "The body is not JSON."),
    ("429", "Too many requests."),
    ("500", "The program failed."),
    (
        "503",
        "The program is about to stop, or its store takes nothing now.",
    ),
    ("504", "The answer takes too long."),
];

#[derive(utoipa::OpenApi)]
#[openapi(info(
    title = "Ropewalk",
    description = "The verbs and views of Ropewalk. Errors are problem+json with the codes of the terminal.",
    license(name = "MIT OR Apache-2.0")
))]
struct Base;

/// Returns the document without its paths.
pub(crate) fn base() -> OpenApi {
    Base::openapi()
}

/// Completes the document of the paths with schemas, problems and how to log in.
pub(crate) fn complete(paths: &OpenApi) -> Value {
    let mut document = serde_json::to_value(paths).unwrap_or_default();
    let operations = document
        .get_mut("paths")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
        .filter_map(Value::as_object_mut)
        .flat_map(Map::values_mut);
    for operation in operations {
        if let Some(responses) = operation
            .get_mut("responses")
            .and_then(Value::as_object_mut)
        {
            for (status, description) in PROBLEMS {
                responses.entry(status).or_insert_with(|| told(description));
            }
        }
    }
    document["components"] = json!({
        "schemas": schemas("/components/schemas"),
        "securitySchemes": {
            "token": { "type": "http", "scheme": "bearer" },
        },
    });
    document["security"] = json!([{ "token": [] }]);
    document
}

fn told(description: &str) -> Value {
    json!({
        "description": description,
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    })
}

/// Lists the names of what the API takes and gives, and so of what the terminal answers in JSON.
pub fn schema_names() -> Vec<String> {
    let schemas = schemas("/$defs");
    let names = schemas.as_object().into_iter().flat_map(Map::keys);
    names.cloned().collect()
}

/// Returns the schema of one of [`schema_names`], with those that it needs; `None` for another name.
pub fn schema(name: &str) -> Option<Value> {
    let all = schemas("/$defs");
    let mut needed = Map::new();
    let mut open = vec![name.to_owned()];
    while let Some(next) = open.pop() {
        if needed.contains_key(&next) {
            continue;
        }
        let schema = all.get(&next)?;
        references(schema, &mut open);
        needed.insert(next, schema.clone());
    }
    Some(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "$ref": format!("#/$defs/{name}"),
        "$defs": needed,
    }))
}

/// Finds the names of the schemas that one refers to.
fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Array(parts) => parts.iter().for_each(|part| references(part, found)),
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str);
            let name = name.and_then(|path| path.strip_prefix("#/$defs/"));
            found.extend(name.map(str::to_owned));
            fields.values().for_each(|part| references(part, found));
        }
        _ => {}
    }
}

/// Returns the schemas of everything that is taken and given, which refer to each other below `path`.
fn schemas(path: &'static str) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = path.into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let adds: [fn(&mut SchemaGenerator); 64] = [
        add::<problem::Body>,
        add::<Person>,
        add::<profile::Profile>,
        add::<Page<Person>>,
        add::<Page<IdeaRow>>,
        add::<IdeaView>,
        add::<ideas::NewIdea>,
        add::<ideas::IdeaReceipt>,
        add::<ideas::Words>,
        add::<ideas::MessageReceipt>,
        add::<ideas::Reason>,
        add::<attachments::FileContent>,
        add::<attachments::FileReceipt>,
        add::<Page<SpecificationRow>>,
        add::<SpecificationView>,
        add::<RevisionDifference>,
        add::<specifications::SpecificationRequest>,
        add::<specifications::ApprovalRequest>,
        add::<specifications::ApprovedRevision>,
        add::<specifications::Feedback>,
        add::<specifications::SpecificationReceipt>,
        add::<LinesView>,
        add::<lines::CommentsRequest>,
        add::<Page<BuildRow>>,
        add::<BuildView>,
        add::<TaskView>,
        add::<build_tasks::Retry>,
        add::<build_tasks::Tell>,
        add::<build_tasks::Recipients>,
        add::<build_tasks::Rank>,
        add::<build_tasks::Land>,
        add::<LandingView>,
        add::<Halt>,
        add::<halt::HaltState>,
        add::<halt::StopAll>,
        add::<builds::Why>,
        add::<builds::WishReceipt>,
        add::<Page<Passage>>,
        add::<Page<UsageRow>>,
        add::<Page<QuestionView>>,
        add::<questions::AnswerForm>,
        add::<questions::AnswerRequest>,
        add::<questions::AcceptedAnswer>,
        add::<Page<questions::AcceptedAnswer>>,
        add::<Page<TimelineEvent>>,
        add::<EventView>,
        add::<events::Replay>,
        add::<events::ReplayReceipt>,
        add::<Page<WaitRow>>,
        add::<WaitsView>,
        add::<Page<NoticeRow>>,
        add::<Page<Lease>>,
        add::<Page<Component>>,
        add::<Page<Alert>>,
        add::<running::SeenAlert>,
        add::<running::Examination>,
        add::<Page<DeadLetterRow>>,
        add::<DeadLetterView>,
        add::<Page<KnowledgeItem>>,
        add::<KnowledgeView>,
        add::<knowledge::NewKnowledge>,
        add::<knowledge::KnowledgeReceipt>,
        add::<Page<Review>>,
        add::<ReviewView>,
    ];
    for add in adds {
        add(&mut generator);
    }
    let mut schemas = Value::Object(generator.take_definitions(true));
    list_words(&mut schemas);
    schemas
}

/// Turns every choice of single words into a list of them, which makers of clients understand; what each means is told with
/// the whole.
fn list_words(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(list_words),
        Value::Object(fields) => {
            fields.values_mut().for_each(list_words);
            let Some(words) = fields.get("oneOf").and_then(words) else {
                return;
            };
            let told = fields.get("description").and_then(Value::as_str);
            let mut told: Vec<String> = told.map(str::to_owned).into_iter().collect();
            told.extend(words.iter().filter_map(|(word, meaning)| {
                let meaning = meaning.as_ref()?;
                Some(format!("`{word}`: {meaning}"))
            }));
            let words: Vec<&String> = words.iter().map(|(word, _)| word).collect();
            let listed =
                json!({ "type": "string", "enum": words, "description": told.join("\n\n") });
            *schema = listed;
        }
        _ => {}
    }
}

/// Returns the words among which `choice` lets one choose, each with what it means; none where it is about more than words.
fn words(choice: &Value) -> Option<Vec<(String, Option<String>)>> {
    let mut words = Vec::new();
    for part in choice.as_array()? {
        if part["type"] != "string" {
            return None;
        }
        let meaning = part["description"].as_str().map(str::to_owned);
        if let Some(word) = part["const"].as_str() {
            words.push((word.to_owned(), meaning));
            continue;
        }
        for word in part["enum"].as_array()? {
            words.push((word.as_str()?.to_owned(), meaning.clone()));
        }
    }
    Some(words)
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_words_is_a_list_and_any_other_choice_stays() {
        let word = |word: &str| json!({ "type": "string", "const": word, "description": "It is." });
        let plain = json!({ "type": "string", "enum": ["c", "d"] });
        let mut schemas = json!({
            "State": { "description": "Where it is.", "oneOf": [plain, word("a")] },
            "About": { "oneOf": [word("a"), { "type": "object" }] },
        });
        let about = schemas["About"].clone();
        list_words(&mut schemas);
        let state = json!({ "type": "string", "enum": ["c", "d", "a"], "description": "Where it is.\n\n`a`: It is." });
        assert_eq!(schemas, json!({ "State": state, "About": about }));
    }
}
