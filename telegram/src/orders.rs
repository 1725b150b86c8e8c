//! Does what a command asks for, by the verbs of `desk`.

pub(crate) mod giving_up;
pub(crate) mod naming;
pub(crate) mod revision;
mod standing;

use ropewalk_desk::builds::Wish;
use ropewalk_desk::questions::answer_defaults;
use ropewalk_desk::views::idea::{self, IdeaFilter, IdeaRow};
use ropewalk_desk::{halt, ideas, phones, specifications};
use ropewalk_orchestrator::notices::summary_of_last_day;
use ropewalk_schemas::Slug;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::specification::Complexity;
use ropewalk_store::{ReadError, Store};

use crate::commands::{self, Command};
use crate::surface::{Answer, CHANNEL, Surface, SurfaceError, Whom};
use crate::talk::{self, asking, silence};
use crate::words::refusal;
use crate::{builds, starting, words};

/// How many lines of a list a phone is shown.
const LINES: usize = 30;
/// How many of them have a button.
const PRESSED: usize = 8;

/// Does what `command` asks for; returns what is answered.
pub(crate) async fn carry_out(
    surface: &Surface,
    whom: &Whom,
    command: Command,
    rest: &str,
) -> Result<Answer, SurfaceError> {
    let store = &surface.services.store;
    if matches!(command, Command::Idea | Command::New | Command::Execute) {
        revision::forget(surface, whom).await?;
    }
    let told = match command {
        Command::Land => return builds::land(surface, whom, rest).await,
        Command::Pause => return builds::steer(surface, whom, rest, Wish::Pause).await,
        Command::Resume => return builds::steer(surface, whom, rest, Wish::Resume).await,
        Command::Stop => return builds::steer(surface, whom, rest, Wish::Stop).await,
        Command::Retry => return builds::retry(surface, whom, rest).await,
        Command::Tell => return builds::tell(surface, whom, rest).await,
        Command::Priority => return builds::rank(surface, whom, rest).await,
        Command::Ideas => return listed(surface).await,
        Command::Idea if !rest.is_empty() => return talk::turn_to(surface, whom, rest).await,
        Command::Execute => return execute(surface, whom, rest).await,
        Command::Spec => return specification(surface, whom, rest).await,
        Command::Abandon => return giving_up::abandon(surface, whom, rest).await,
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
        Command::New if rest.is_empty() => {
            Ok("Say what you want: /newtask a page that counts my walks".to_owned())
        }
        Command::New => talk::begin(surface, whom, rest).await,
        Command::Idea => {
            Ok("Name the idea: /idea walks goes on with it; /ideas lists them.".to_owned())
        }
        Command::Done => done(surface, whom, rest).await,
        Command::Agents => Ok(none(&standing::parts(surface).await?, "Nothing runs.")),
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

/// Lists the ideas, the newest first, with buttons that go on with those.
async fn listed(surface: &Surface) -> Result<Answer, SurfaceError> {
    let rows = idea::list(&surface.services.store, &IdeaFilter::default()).await?;
    let newest: Vec<&IdeaRow> = rows.iter().rev().take(LINES).collect();
    let lines = newest
        .iter()
        .map(|row| format!("`{}`: {} ({})", row.slug, row.title, row.standing.as_str()));
    let lines: Vec<String> = lines.collect();
    let slugs = newest.iter().take(PRESSED).map(|row| &row.slug);
    let buttons = slugs.filter_map(talk::turning);
    Ok(Answer {
        text: none(&lines.join("\n"), "No idea yet; write what you want."),
        buttons: buttons.collect(),
    })
}

/// Says what can be said here.
pub(crate) fn help() -> String {
    let menu = commands::menu().into_iter();
    let lines: Vec<String> = menu
        .map(|(name, does)| format!("/{name}: {does}"))
        .collect();
    format!(
        "Write what you want, and it becomes an idea; what you write next belongs to it. Buttons answer questions, and so do \
         words, in reply to the message that asks or right behind it.\n\n{}",
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

/// Returns the idea that is meant: the one that is named, be it by a part of its name, else the one that is talked about.
async fn meant(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<Result<Slug, String>, SurfaceError> {
    let store = &surface.services.store;
    if !rest.is_empty() {
        let mut ideas = naming::find(store, rest).await?;
        if ideas.len() > 1 {
            return Ok(Err(naming::fits_several(rest, &ideas)));
        }
        return Ok(match ideas.pop() {
            Some(idea) => Ok(idea),
            None => Slug::parse(rest).map_err(|error| error.to_string()),
        });
    }
    let phone = phones::of(store, &whom.person.name).await?;
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
    if let Some(shown) = starting::offer_in_full(surface, whom, &idea).await? {
        return Ok(shown);
    }
    let shown = starting::newest(surface, &idea).await?;
    Ok(shown.unwrap_or_else(|| {
        format!("`{idea}` has no specification yet; /execute {idea} asks for one.").into()
    }))
}

/// Shows the build of an idea where its specification is there, else asks for that, as large as is said behind the idea.
async fn execute(surface: &Surface, whom: &Whom, rest: &str) -> Result<Answer, SurfaceError> {
    let (named, complexity) = sized(&surface.services.store, rest).await?;
    let idea = match meant(surface, whom, named).await? {
        Ok(idea) => idea,
        Err(told) => return Ok(told.into()),
    };
    if let Some(shown) = starting::offer(surface, whom, &idea).await? {
        return Ok(shown);
    }
    let (context, person) = (surface.context(), &whom.person.name);
    let asked = specifications::request(&context, &idea, person, complexity).await;
    let told = match asked {
        Ok(_) => {
            let unanswered = unanswered_words(surface, whom, &idea).await?;
            format!(
                "The specification of `{idea}` is being written; you are asked here before anything is built.{unanswered}"
            )
        }
        Err(error) => refusal::request(&error),
    };
    Ok(told.into())
}

/// Says of words about an idea that nobody has answered yet that its plan may hold nothing of them; nothing where there are none.
async fn unanswered_words(
    surface: &Surface,
    whom: &Whom,
    idea: &Slug,
) -> Result<&'static str, SurfaceError> {
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    let waits = phone.awaits.is_some() && phone.idea.as_ref() == Some(idea);
    Ok(if waits {
        " What you wrote last is not answered yet, so that it may hold nothing of that; \"Change this...\" asks for it then."
    } else {
        ""
    })
}

/// Splits an idea from how much is planned for it, which is as much as everywhere where nobody says it. What stands alone is the
/// idea that is called so, if there is one.
async fn sized<'t>(store: &Store, rest: &'t str) -> Result<(&'t str, Complexity), ReadError> {
    let (idea, size) = rest.rsplit_once(char::is_whitespace).unwrap_or(("", rest));
    let (idea, size) = (idea.trim_end(), size.to_ascii_lowercase());
    let Some(complexity) = Complexity::parse(&size) else {
        return Ok((rest, Complexity::Medium));
    };
    if idea.is_empty() && store.get::<Idea>(&size).await?.is_some() {
        return Ok((rest, Complexity::Medium));
    }
    Ok((idea, complexity))
}
