//! The plan as it lies in the folder of its idea, beside what the store holds of it.

use std::path::Path;

use ropewalk_schemas::document::{self, DocumentError, spec_md, tasks_md};
use ropewalk_schemas::specification::Revision;

/// Says of each file of a plan below `folder`, that of its idea, what is there that is not `revision`, or why that cannot be
/// told; what counts is what the store holds.
pub fn departures(folder: &Path, revision: &Revision) -> Vec<String> {
    let mut departures = Vec::new();
    let mut check = |name: &str, parse: &dyn Fn(&str) -> Result<bool, DocumentError>| {
        let path = folder.join("build").join(name);
        let outcome = match std::fs::read(&path) {
            Ok(bytes) => document::text(&bytes)
                .and_then(parse)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match outcome {
            Ok(true) => {}
            Ok(false) => departures.push(format!(
                "`{}` differs from the stored revision",
                path.display()
            )),
            Err(reason) => departures.push(format!("`{}`: {reason}", path.display())),
        }
    };
    check("spec.md", &|text| {
        Ok(spec_md::parse(text)?.1 == revision.document)
    });
    check("tasks.md", &|text| {
        Ok(tasks_md::parse(text)?.blocks() == revision.tasks)
    });
    departures
}
