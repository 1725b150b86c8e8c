//! Verb `knowledge list`: what was learned, the newest first.

use clap::Args;
use ropewalk_desk::views::knowledge;
use ropewalk_schemas::clip;
use ropewalk_schemas::knowledge::KnowledgeItem;

use super::add::Kind;
use crate::app::App;
use crate::error::CliError;

/// Which items.
#[derive(Debug, Args)]
pub struct List {
    /// Only those of this kind.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Those that are out of use too.
    #[arg(long)]
    all: bool,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let kind = self.kind.map(Into::into);
        let items = knowledge::list(&opened.store, kind, self.all).await?;
        app.output.list(&items, HEADER, row)
    }
}

/// The columns of a list of items.
pub(super) const HEADER: [&str; 6] = ["id", "kind", "state", "confidence", "files", "says"];

/// Shows an item in a list.
pub(super) fn row(item: &KnowledgeItem) -> [String; 6] {
    [
        item.id.to_string(),
        super::word(&item.kind),
        item.state.to_string(),
        format!("{:.2}", item.confidence),
        item.globs.join(" "),
        clip::line(&item.content, 80),
    ]
}
