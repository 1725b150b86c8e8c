//! Does what a command asks for, by the verbs of `desk`.

mod standing;

use ropewalk_desk::builds::Wish;
use ropewalk_desk::questions::answer_defaults;
use ropewalk_desk::views::idea::{self, IdeaFilter};
use ropewalk_desk::{halt, ideas, phones, specifications};
use ropewalk_orchestrator::notices::summary_of_last_day;
use ropewalk_schemas::Slug;
use ropewalk_schemas::specification::Complexity;

use crate::commands::{self, Command};
use crate::surface::{Answer, CHANNEL, Surface, SurfaceError, Whom};
use crate::talk::{self, asking, silence};
use crate::words::refusal;
use crate::{builds, starting, words};

/// How many lines of a list a phone is shown.
const LINES: usize = 30;

/// Does what `command` asks for; returns what is answered.
pub(crate) async fn carry_out(
    surface: &Surface,
    whom: &Whom,
    command: Command,
    rest: &str,
) -> Result<Answer, SurfaceError> {
    let store = &surface.services.store;
    let told = match command {
        Command::Land => return builds::land(surface, whom, rest).await,
        Command::Execute => return execute(surface, whom, rest).await,
        Command::Spec => return specification(surface, whom, rest).await,
        Command::Help => Ok(help()),
        Command::Settings => {
            let wants_summary = surface.people.wants_summary(&whom.person.name);
            Ok(words::settings(&whom.person, wants_summary, &surface.rules))
        }
        Command::Status => standing::builds(surface).await,
        Command::Summary => {
            let now = surface.services.clock.now();
            Ok(words::notice(&summary_of_last_day(store, now).await?))
        }
        Command::Questions => questions(surface, whom).await,
        Command::Defaults => Ok(defaults(surface, whom).await),
        Command::Ideas => {
            let rows = idea::list(store, &IdeaFilter::default()).await?;
            let lines = rows.iter().rev().take(LINES);
            let lines: Vec<String> = lines
                .map(|row| format!("`{}`: {} ({})", row.slug, row.title, row.standing.as_str()))
                .collect();
            Ok(none(&lines.join("\n"), "No idea yet; write what you want."))
        }
        Command::New if rest.is_empty() => {
            Ok("Say what you want: /newtask a page that counts my walks".to_owned())
        }
        Command::New => talk::begin(surface, whom, rest).await,
        Command::Idea if rest.is_empty() => {
            Ok("Name the idea: /idea walks goes on with it; /ideas lists them.".to_owned())
        }
        Command::Idea => talk::turn_to(surface, whom, rest).await,
        Command::Done => done(surface, whom, rest).await,
        Command::Agents => Ok(none(&standing::parts(surface).await?, "Nothing runs.")),
        Command::Pause => builds::steer(surface, whom, rest, Wish::Pause).await,
        Command::Resume => builds::steer(surface, whom, rest, Wish::Resume).await,
        Command::Stop => builds::steer(surface, whom, rest, Wish::Stop).await,
        Command::Retry => builds::retry(surface, whom, rest).await,
        Command::Tell => builds::tell(surface, whom, rest).await,
        Command::Priority => builds::rank(surface, whom, rest).await,
        Command::StopAll => {
            let reason = (!rest.is_empty()).then(|| rest.to_owned());
            let stopped = halt::stop(&surface.context(), &whom.person, reason).await;
            Ok(match stopped {
                Ok(_) => "Everything is stopped. /resumeall lets it go on.".to_owned(),
                Err(error) => refusal::halt(&error),
            })
        }
        Command::ResumeAll => {
            let lifted = halt::lift(&surface.context(), &whom.person).await;
            Ok(match lifted {
                Ok(_) => "Everything goes on where it stood.".to_owned(),
                Err(error) => refusal::halt(&error),
            })
        }
    };
    told.map(Into::into)
}

/// Says what can be said here.
pub(crate) fn help() -> String {
    let menu = commands::menu().into_iter();
    let lines: Vec<String> = menu
        .map(|(name, does)| format!("/{name}: {does}"))
        .collect();
    format!(
        "Write what you want, and it becomes an idea; what you write next belongs to it. Buttons answer questions; \
         to answer in words, reply to the message that asks.\n\n{}",
        lines.join("\n")
    )
}

fn none(text: &str, instead: &str) -> String {
    if text.is_empty() { instead } else { text }.to_owned()
}

/// Puts the open questions to this person: once more those that were, and those that went to others.
async fn questions(surface: &Surface, whom: &Whom) -> Result<String, SurfaceError> {
    let open = standing::open(surface).await?;
    if open.is_empty() {
        return Ok("No question is open.".to_owned());
    }
    for question in open.iter().take(LINES) {
        asking::put(surface, whom, question).await?;
    }
    Ok("The open questions come again.".to_owned())
}

/// Answers what takes a default without consequences.
async fn defaults(surface: &Surface, whom: &Whom) -> String {
    let answered = answer_defaults(&surface.context(), &whom.person, CHANNEL).await;
    match answered {
        Ok(done) => words::defaults(&done),
        Err(error) => refusal::answer(&error),
    }
}

/// Returns the idea that is meant: the one that is named, else the one that is talked about.
async fn meant(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<Result<Slug, String>, SurfaceError> {
    if !rest.is_empty() {
        return Ok(Slug::parse(rest).map_err(|error| error.to_string()));
    }
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    let none = || "Name the idea; /ideas lists them.".to_owned();
    Ok(phone.idea.ok_or_else(none))
}

async fn done(surface: &Surface, whom: &Whom, rest: &str) -> Result<String, SurfaceError> {
    let idea = match meant(surface, whom, rest).await? {
        Ok(idea) => idea,
        Err(told) => return Ok(told),
    };
    let finished = ideas::finish(&surface.context(), &idea, &whom.person.name).await;
    match finished {
        Ok(said) => {
            let phone = phones::of(&surface.services.store, &whom.person.name).await?;
            let waits = silence::told(surface, &phone).await?;
            talk::listen(surface, whom, said.idea, said.message).await?;
            Ok(waits.unwrap_or_else(|| "Its brief is being written.".to_owned()))
        }
        Err(error) => Ok(refusal::chat(&error)),
    }
}

/// Shows what the specification of an idea asks for, with buttons where it waits for an approval.
async fn specification(surface: &Surface, whom: &Whom, rest: &str) -> Result<Answer, SurfaceError> {
    let idea = match meant(surface, whom, rest).await? {
        Ok(idea) => idea,
        Err(told) => return Ok(told.into()),
    };
    if let Some(shown) = starting::offer(surface, whom, &idea).await? {
        return Ok(shown);
    }
    let shown = starting::newest(surface, &idea).await?;
    Ok(shown.unwrap_or_else(|| {
        format!("`{idea}` has no specification yet; /execute {idea} asks for one.").into()
    }))
}

/// Shows the build of an idea where its specification is there, else asks for that.
async fn execute(surface: &Surface, whom: &Whom, rest: &str) -> Result<Answer, SurfaceError> {
    let idea = match meant(surface, whom, rest).await? {
        Ok(idea) => idea,
        Err(told) => return Ok(told.into()),
    };
    if let Some(shown) = starting::offer(surface, whom, &idea).await? {
        return Ok(shown);
    }
    let (context, person) = (surface.context(), &whom.person.name);
    let asked = specifications::request(&context, &idea, person, Complexity::Simple).await;
    let told = match asked {
        Ok(_) => format!(
            "The specification of `{idea}` is being written; you are asked here before anything is built."
        ),
        Err(error) => refusal::request(&error),
    };
    Ok(told.into())
}
