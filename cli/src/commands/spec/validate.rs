//! Verb `spec validate`: checks the newest revision again, and the files that were written of it.

use clap::Args;
use ropewalk_agents::specification::validate::{self, Facts};
use ropewalk_desk::specifications;
use ropewalk_schemas::document;
use ropewalk_schemas::specification::Revision;
use ropewalk_store::revision_key;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The specification.
#[derive(Debug, Args)]
pub struct Validate {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
}

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Validate {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let spec = self.id.specification(&opened).await?;
        let key = revision_key(spec.id, spec.revision);
        let Some(revision) = opened.store.get::<Revision>(&key).await? else {
            let text = format!(
                "specification `{}` is {} and has no revision to check",
                spec.id, spec.state
            );
            return Err(CliError::refused("no-revision", text));
        };
        let facts = Facts {
            complexity: Some(spec.complexity),
            ..Facts::default()
        };
        let found = validate::check(&revision.document, &revision.tasks, &facts);
        let mut errors = found.errors;
        if document::hash(&revision.document, &revision.tasks) != revision.hash {
            errors.push("the stored content does not fit its hash".to_owned());
        }
        let places = opened.project.places();
        let folder = places.idea_folder(&spec.user, &spec.idea);
        errors.extend(specifications::departures(&folder, &revision));
        let validated = Report {
            ok: errors.is_empty(),
            errors,
            warnings: found.warnings,
        };
        app.output.show(&validated, human)?;
        match validated.errors.len() {
            0 => Ok(()),
            many => Err(CliError::refused(
                "invalid",
                (
                    format!("{many} errors"),
                    format!(
                        "ask for changes with `ropewalk spec revise {} WORDS`",
                        spec.id
                    ),
                ),
            )),
        }
    }
}

fn human(validated: &Report) -> String {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(
        validated
            .errors
            .iter()
            .map(|error| format!("error    {error}")),
    );
    lines.extend(
        validated
            .warnings
            .iter()
            .map(|warning| format!("warning  {warning}")),
    );
    if validated.ok {
        lines.push("the specification is sound".to_owned());
    }
    lines.join("\n")
}
