//! Verb `schema`: prints the JSON schema of what the verbs answer with `--json`.

use clap::Args;

use crate::app::App;
use crate::error::CliError;

/// Which answer is meant.
#[derive(Debug, Args)]
pub struct Schema {
    /// Its name, for example `SpecificationView`; without one, all names are listed.
    name: Option<String>,
}

impl Schema {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let Some(name) = self.name else {
            let names = ropewalk_server::schema_names();
            return app.output.list(&names, ["name"], |name| [name.clone()]);
        };
        let schema = ropewalk_server::schema(&name);
        let schema = schema.ok_or_else(|| CliError::unknown("schema", &name, "schema"))?;
        app.output.object(&schema)
    }
}
