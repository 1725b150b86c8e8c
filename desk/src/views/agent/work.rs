//! Says in words for eyes what a part works on: parts name it as events do.

use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::question::Question;
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{ReadError, Record, Store, Versioned};

/// How many letters of a title or a question are shown.
const SHOWN: usize = 80;

/// Returns the words for an entity; of one that is gone, or of a kind that has none, its name.
pub(super) async fn in_words(entity: &str, store: &Store) -> Result<String, ReadError> {
    let (kind, name) = entity.split_once('/').unwrap_or((entity, ""));
    let words = match kind {
        "project" => Some("the project".to_owned()),
        "timer" => Some("a timer".to_owned()),
        "idea" => Some(format!("the idea {name}")),
        "component" => Some(format!("the part {name}")),
        "knowledge" => Some("a lesson".to_owned()),
        "spec" => {
            let spec = found::<Specification>(name, store).await?;
            spec.map(|spec| format!("the specification of {}", spec.idea))
        }
        "build" => {
            let build = found::<Build>(name, store).await?;
            build.map(|build| format!("the build of {}", build.idea))
        }
        "question" => {
            let question = found::<Question>(name, store).await?;
            question.map(|question| format!("the question \"{}\"", shown(&question.text)))
        }
        "task" => task(name, store).await?,
        _ => None,
    };
    Ok(words.unwrap_or_else(|| entity.to_owned()))
}

async fn task(name: &str, store: &Store) -> Result<Option<String>, ReadError> {
    let parts = name.split_once('/').and_then(|(build, task)| {
        Some((build.parse::<BuildId>().ok()?, TaskId::parse(task).ok()?))
    });
    let Some((build, id)) = parts else {
        return Ok(None);
    };
    let Some(of) = found::<Build>(&build.to_string(), store).await? else {
        return Ok(None);
    };
    let task = store
        .get::<Task>(&ropewalk_store::task_key(build, &id))
        .await?;
    let title = task.and_then(|task| task.block.title.clone());
    let title = title.map_or_else(String::new, |title| format!(": {}", shown(&title)));
    Ok(Some(format!("task {id} of {}{title}", of.idea)))
}

async fn found<R: Record>(key: &str, store: &Store) -> Result<Option<R>, ReadError> {
    Ok(store.get::<R>(key).await?.map(Versioned::into_inner))
}

fn shown(text: &str) -> String {
    clip::line(text, SHOWN)
}
