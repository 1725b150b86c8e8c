//! Begins an idea with a text that is all of it, for `spec generate --from`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ropewalk_desk::ideas::{self, ChatError, Opening};
use ropewalk_runtime::Clock;
use ropewalk_schemas::idea::{Idea, IdeaState, Phase, Session};
use ropewalk_schemas::{Slug, Subject};
use ropewalk_workspace::Git;

use crate::app::App;
use crate::error::CliError;
use crate::wiring::{self, Reach, Vigil};

/// Who takes it.
const ROLE: &str = "ideation";
/// The most bytes of it, as of any message.
const MOST: u64 = 64 * 1024;

/// Reads the text and begins an idea with it; a text that cannot be taken leaves nothing behind.
pub(super) async fn begin(app: &App, from: &Path, name: Option<Slug>) -> Result<Slug, CliError> {
    let place = from.to_owned();
    let reading = tokio::task::spawn_blocking(move || read(&place));
    let text = tokio::select! {
        text = reading => text.map_err(CliError::failed)??,
        // Nothing is begun yet that would have to be put away.
        () = app.interrupts.requested() => return Err(CliError::Cancelled),
    };
    let git = wiring::git(&app.environment).await?;
    // Before the store is opened, which makes what is not there yet and marks the repository.
    require_ground(app, &git).await?;
    let opened = app.open().await?;
    wiring::open_clone(&opened.project, git).await?;
    let opening = Opening {
        user: opened.person()?.name.clone(),
        title: None,
        text,
        slug: name,
        kind: None,
        whole: true,
    };
    let started = ideas::start(&opened.context(), opening).await;
    opened.poke()?;
    opened.close().await?;
    let idea = started?.idea;
    app.output.note(&format!("began `{idea}`"))?;
    Ok(idea)
}

/// Refuses where no plan can come of a text; writes nothing.
async fn require_ground(app: &App, git: &Git) -> Result<(), CliError> {
    let project = app.project()?;
    wiring::require_commit(&project, git).await?;
    let state = project.state();
    // Nobody runs on a state that is not there yet.
    if !state.exists() || !wiring::awake(state)? {
        wiring::require_models(&project, &app.environment, &Clock::system())?;
    }
    Ok(())
}

fn read(from: &Path) -> Result<String, CliError> {
    let name = if from == Path::new("-") {
        "standard input".to_owned()
    } else {
        format!("`{}`", from.display())
    };
    let refused = |why: String, next: &str| {
        CliError::refused("input", (format!("cannot take {name}: {why}"), next))
    };
    let mut bytes = Vec::new();
    let read = if from == Path::new("-") {
        std::io::stdin().take(MOST + 1).read_to_end(&mut bytes)
    } else {
        File::open(from).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| refused(error.to_string(), "name a text file, or `-`"))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST {
        return Err(refused(
            format!("it has more than {MOST} bytes"),
            "say it shorter, and put the rest into files of the repository",
        ));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| refused("it is not UTF-8 text".to_owned(), "name a text file"))?;
    if text.contains('\0') {
        return Err(refused("it is binary".to_owned(), "name a text file"));
    }
    if text.trim().is_empty() {
        return Err(refused("it is empty".to_owned(), "say what is to be built"));
    }
    Ok(text)
}

/// Waits until the documents of the idea are written.
pub(super) async fn taken(reach: &Reach, slug: &Slug) -> Result<(), CliError> {
    reach.require(ROLE).await?;
    let subject = Subject::idea(slug);
    let said = reach.newest("ideation.message", &subject).await?;
    let mut vigil = Vigil::over(ROLE, subject, said - 1)?;
    loop {
        let idea = reach.store().get::<Idea>(slug.as_str()).await?;
        let idea = idea.ok_or_else(|| CliError::unknown("idea", slug, "idea list"))?;
        let session = reach
            .store()
            .get::<Session>(&idea.session.to_string())
            .await?;
        if session.is_some_and(|session| session.phase == Phase::Complete) {
            return Ok(());
        }
        if idea.state == IdeaState::Abandoned {
            return Err(ChatError::Abandoned(slug.clone()).into());
        }
        vigil.look(reach, "the text was not taken").await?;
        reach.pause().await?;
    }
}
