//! Verb `idea attach`: keeps a file with an idea, and tells of it in its conversation.

use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_desk::attachments::{self, AttachError, FILE_BYTES, Upload};
use ropewalk_schemas::idea::{Attachment, Idea};
use ropewalk_schemas::{MessageId, Slug};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;

/// The idea, and the file.
#[derive(Debug, Args)]
pub struct Attach {
    /// Its name, as `idea list` shows it, or how it begins.
    idea: IdeaText,
    /// The file, of at most 20 MiB; a text is read aloud in the conversation.
    file: PathBuf,
    /// What is said along with it.
    #[arg(long, value_name = "WORDS", default_value = "")]
    say: String,
}

#[derive(Debug, Serialize)]
struct Receipt {
    idea: Slug,
    message: MessageId,
    #[serde(flatten)]
    file: Attachment,
}

impl Attach {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let slug = self.idea.find(&opened).await?;
        let idea = opened.store.get::<Idea>(slug.as_str()).await?;
        let idea = idea.ok_or_else(|| CliError::unknown("idea", &slug, "idea list"))?;
        let bytes = read(&self.file)?;
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let sent = Upload {
            name: &name,
            media_type: None,
            bytes: &bytes,
            words: &self.say,
            note: "",
        };
        let (context, user) = (opened.context(), &opened.person()?.name);
        let state = opened.project.state();
        let attached = attachments::attach(&context, state, idea.session, user, sent).await?;
        opened.poke()?;
        let kept = Receipt {
            idea: attached.said.idea,
            message: attached.said.message,
            file: attached.file,
        };
        app.output.show(&kept, |kept| {
            let (idea, path) = (&kept.idea, &kept.file.path);
            format!("kept with {idea} as {path}; `ropewalk idea chat {idea}` shows the answer")
        })
    }
}

/// Reads a plain file that is small enough.
fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let refused = |why: String| {
        let text = (
            format!("cannot read `{}`: {why}", path.display()),
            "name a file",
        );
        CliError::refused("input", text)
    };
    let status = path
        .metadata()
        .map_err(|error| refused(error.to_string()))?;
    if !status.is_file() {
        return Err(refused("it is no file".to_owned()));
    }
    if status.len() > FILE_BYTES {
        return Err(AttachError::TooLarge(status.len()).into());
    }
    std::fs::read(path).map_err(|error| refused(error.to_string()))
}
