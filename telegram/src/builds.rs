//! Does what a command asks for about a build, by the verbs of `desk`.

use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_desk::builds::landing::{self, Landing, LandingView};
use ropewalk_desk::builds::{self, Wish, tasks};
use ropewalk_desk::phones;
use ropewalk_desk::views::build::{self, BuildFilter, BuildRow};
use ropewalk_desk::views::specification;
use ropewalk_runtime::token;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::phone::{LandingOffer, Reply};
use ropewalk_schemas::specification::SpecState;
use ropewalk_schemas::wish::Wish as WishOfBranch;
use ropewalk_schemas::{Event, EventPattern, Payload, Priority, Slug, TaskId};
use ropewalk_store::EventFilter;

use crate::commands::SAID_BACK;
use crate::keyboard::{self, Mark};
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom};
use crate::words::refusal;

/// How long a landing may be decided after it was shown.
const OFFERED: TimeDelta = TimeDelta::days(14);
/// How long a look at what a landing comes to may take: whoever says something else meanwhile waits for it.
const PREVIEW: Duration = Duration::from_secs(5);
/// What can be decided about a landing, in the order of its buttons.
const LANDINGS: [(&str, Landing); 2] = [
    ("Land it", Landing::Land),
    ("Resolve conflicts first", Landing::Resolve),
];

/// Passes on what somebody wants of a whole build.
pub(crate) async fn steer(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
    wish: Wish,
) -> Result<String, SurfaceError> {
    let rows = rows(surface).await?;
    let build = match rest {
        "" => running(rows),
        named => named_build(surface, &rows, named).await?,
    };
    let build = match build {
        Ok(build) => build,
        Err(told) => return Ok(told),
    };
    let steered = builds::steer(&surface.context(), &build, wish, &whom.person, None).await;
    Ok(match steered {
        Ok(_) => format!("Recorded: the build of `{}` {}.", build.idea, does(wish)),
        Err(error) => refusal::steer(&error, &build),
    })
}

/// Says what a build does by a wish.
const fn does(wish: Wish) -> &'static str {
    match wish {
        Wish::Pause => "pauses",
        Wish::Resume => "goes on",
        Wish::Stop => "stops",
    }
}

/// Asks for another try of a task, perhaps with advice.
pub(crate) async fn retry(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<String, SurfaceError> {
    let (build, rest) = match meant(surface, rest).await? {
        Ok(meant) => meant,
        Err(told) => return Ok(told),
    };
    let (task, advice) = split(rest);
    let Ok(task) = TaskId::parse(task) else {
        return Ok("Name the task: /retry walks T-002 what to do differently".to_owned());
    };
    let advice = (!advice.is_empty()).then(|| advice.to_owned());
    let is_it = |payload: &Payload| {
        matches!(payload, Payload::TaskRetry(asked)
            if asked.task_id == task && asked.guidance == advice && asked.requested_by == *whom.person.name.as_str())
    };
    if told_already(surface, whom, &build, "task.retry", is_it).await? {
        return Ok(format!(
            "Recorded: another try of {task} of `{}`.",
            build.idea
        ));
    }
    let asked = tasks::retry(&surface.context(), &build, &task, &whom.person, advice).await;
    Ok(match asked {
        Ok(_) => format!("Recorded: another try of {task} of `{}`.", build.idea),
        Err(error) => refusal::task(&error, &build),
    })
}

/// Says something to the models that work on a build. Its idea has to be named: what is said may begin with any word.
pub(crate) async fn tell(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<String, SurfaceError> {
    let (named, said) = split(rest);
    let Some(build) = of_idea(&rows(surface).await?, named) else {
        let told = unapproved(surface, named).await?;
        return Ok(told.unwrap_or_else(|| {
            "Name the idea whose build hears it: /tell walks use metres".to_owned()
        }));
    };
    let (first, of_task) = split(said);
    let known = tasks::of_build(&surface.services.store, build.id).await?;
    let (task, text) = if known.iter().any(|task| task.id.as_str() == first) {
        (Some(first), of_task)
    } else {
        (None, said)
    };
    let is_it = |payload: &Payload| {
        matches!(payload, Payload::BuildTell(told)
            if told.text == text && told.said_by == *whom.person.name.as_str()
                && task.is_none_or(|task| told.task_id.as_str() == task))
    };
    if told_already(surface, whom, &build, "build.tell", is_it).await? {
        return Ok(format!(
            "Recorded: whoever works on `{}` hears it.",
            build.idea
        ));
    }
    let told = tasks::tell(&surface.context(), &build, task, &whom.person, text).await;
    Ok(match told {
        Ok(hearing) => {
            let hearing: Vec<&str> = hearing.iter().map(TaskId::as_str).collect();
            let (idea, hearing) = (&build.idea, hearing.join(", "));
            format!("Recorded: whoever works on {hearing} of `{idea}` hears it.")
        }
        Err(error) => refusal::task(&error, &build),
    })
}

/// Returns whether an earlier try had told a build this already, by an event of `event_type`.
async fn told_already(
    surface: &Surface,
    whom: &Whom,
    build: &Build,
    event_type: &str,
    is_it: impl Fn(&Payload) -> bool,
) -> Result<bool, SurfaceError> {
    let Some(begun) = whom.begun_before else {
        return Ok(false);
    };
    let told = EventFilter {
        from: Some(begun),
        pattern: Some(EventPattern::of(event_type)),
        correlation: Some(build.correlation_id),
        ..EventFilter::default()
    };
    let told = surface.services.store.events(&told).await?.into_iter();
    let mut told = told.filter_map(|stored| Event::try_from(stored.event.as_ref()).ok());
    Ok(told.any(|event| is_it(&event.payload)))
}

/// Says how urgent a build is.
pub(crate) async fn rank(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<String, SurfaceError> {
    let (build, rest) = match meant(surface, rest).await? {
        Ok(meant) => meant,
        Err(told) => return Ok(told),
    };
    let number = rest.parse::<u8>().ok();
    let Some(priority) = number.and_then(|number| Priority::new(number).ok()) else {
        return Ok("Say how urgent, from 1 (highest) to 10: /priority walks 2".to_owned());
    };
    let ranked = builds::rank(&surface.context(), &build, priority, &whom.person).await;
    Ok(match ranked {
        Ok(()) => format!(
            "Recorded: the build of `{}` has priority {}.",
            build.idea,
            priority.get()
        ),
        Err(error) => refusal::steer(&error, &build),
    })
}

/// Shows what landing a build comes to, with buttons that decide it.
pub(crate) async fn land(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<Answer, SurfaceError> {
    if let Err(forbidden) = whom.person.demand(Right::Land) {
        return Ok(Words::of(&forbidden).to_string().into());
    }
    let rows = rows(surface).await?;
    let build = match rest {
        "" => finished(rows),
        named => named_build(surface, &rows, named).await?,
    };
    let build = match build {
        Ok(build) => build,
        Err(told) => return Ok(told.into()),
    };
    if let Err(refused) = landing::admits(&build) {
        return Ok(refusal::landing(&refused, &build).into());
    }
    let prospect = landing::prospect(&surface.services.store, &build).await?;
    let (comes_to, onto) = match preview(surface, &build).await {
        Ok(view) => (view.in_words(), view.onto),
        Err(why) => (format!("What it comes to cannot be said now: {why}."), None),
    };
    let context = surface.context();
    let nonce: String = token::fresh().chars().take(keyboard::NONCE).collect();
    let offer = LandingOffer {
        nonce: nonce.clone(),
        build: build.id,
        head: build.head.clone(),
        onto,
        until: context.now() + OFFERED,
    };
    phones::change(&context, &whom.person.name, |phone| {
        phone.landing = Some(offer.clone());
    })
    .await?;
    let labels = LANDINGS.map(|(label, _)| label);
    Ok(Answer {
        text: format!(
            "**Land the build of `{}`?**\n\n{prospect}\n\n{comes_to}",
            build.idea
        ),
        buttons: keyboard::labelled(&nonce, &labels),
    })
}

/// Looks at what landing a build comes to, or says why nobody can.
async fn preview(surface: &Surface, build: &Build) -> Result<LandingView, String> {
    tokio::select! {
        view = (surface.landings)(build.clone()) => view,
        () = surface.services.clock.sleep(PREVIEW) => {
            Err("it could not be found out in a few seconds".to_owned())
        }
    }
}

/// Says whether the branches are no longer those that an offer showed.
async fn has_moved(surface: &Surface, offer: &LandingOffer, build: &Build) -> bool {
    if build.head != offer.head {
        return true;
    }
    let Some(onto) = &offer.onto else {
        return false;
    };
    let view = preview(surface, build).await;
    !view.is_ok_and(|view| view.check_shown(None, Some(onto.as_str())).is_ok())
}

/// Takes a press of a button that decides a landing; nothing where it is the button of something else.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    message: i32,
    mark: Mark<'_>,
) -> Result<Option<PressAnswer>, SurfaceError> {
    let store = &surface.services.store;
    let phone = phones::of(store, &whom.person.name).await?;
    let Some(offer) = phone.landing.filter(|offer| offer.nonce == mark.nonce) else {
        return Ok(None);
    };
    let (Some((_, landing)), Some(build)) = (
        LANDINGS.get(mark.place),
        store.get::<Build>(&offer.build.to_string()).await?,
    ) else {
        return Ok(Some("This button means nothing.".to_owned().into()));
    };
    let context = surface.context();
    let is_recorded = recorded_already(surface, whom, &build, *landing).await?;
    let (told, stands) = if is_recorded {
        recorded(*landing, &build, whom)
    } else if context.now() > offer.until || has_moved(surface, &offer, &build).await {
        let old = "What was shown is no longer so; /land shows what it comes to now.";
        (old.to_owned(), old.to_owned())
    } else {
        match landing::land(&context, &build, *landing, &whom.person).await {
            Ok(()) => recorded(*landing, &build, whom),
            Err(refused) => {
                let told = refusal::landing(&refused, &build);
                (told.clone(), told)
            }
        }
    };
    Ok(Some(PressAnswer {
        line: told,
        reply: Some(Reply {
            edits: Some(message),
            ..surface.reply(whom.chat, stands)
        }),
        // It decides once, whatever came of it.
        decided: Some(offer.nonce),
    }))
}

/// Returns whether an earlier try had recorded what is decided of a landing: it waits to be done, or is done since.
async fn recorded_already(
    surface: &Surface,
    whom: &Whom,
    build: &Build,
    landing: Landing,
) -> Result<bool, SurfaceError> {
    let Some(begun) = whom.begun_before else {
        return Ok(false);
    };
    let by = whom.person.name.as_str();
    let store = &surface.services.store;
    let waits = store.get::<WishOfBranch>(&build.id.to_string()).await?;
    if waits.is_some_and(|wish| wish.what == landing.wish() && wish.by == by && wish.at >= begun) {
        return Ok(true);
    }
    let is_it = |payload: &Payload| {
        matches!(payload, Payload::BuildMerged(merged)
            if landing == Landing::Land && merged.merged_by == by)
    };
    told_already(surface, whom, build, "build.merged", is_it).await
}

/// Says that a landing is recorded, to whoever pressed and in the place of the buttons.
fn recorded(landing: Landing, build: &Build, whom: &Whom) -> (String, String) {
    let (idea, by) = (&build.idea, &whom.person.name);
    let stands = match landing {
        Landing::Land => format!("{by} lets the build of `{idea}` be landed."),
        Landing::Resolve => format!(
            "{by} lets a task of the build of `{idea}` resolve its conflicts; it is asked again then."
        ),
    };
    (
        "Recorded; what comes of it is told here.".to_owned(),
        stands,
    )
}

async fn rows(surface: &Surface) -> Result<Vec<BuildRow>, SurfaceError> {
    Ok(build::list(
        &surface.services.store,
        &BuildFilter::default(),
        &surface.builds_with,
    )
    .await?)
}

/// Returns the build that a text begins by naming the idea of, else the one that runs, with what is said of it.
async fn meant<'t>(
    surface: &Surface,
    text: &'t str,
) -> Result<Result<(Build, &'t str), String>, SurfaceError> {
    let rows = rows(surface).await?;
    let (named, rest) = split(text);
    if let Some(build) = of_idea(&rows, named) {
        return Ok(Ok((build, rest)));
    }
    Ok(match running(rows) {
        Ok(build) => Ok((build, text)),
        Err(told) => Err(unapproved(surface, named).await?.unwrap_or(told)),
    })
}

/// Returns the newest build of an idea, or why there is none.
async fn named_build(
    surface: &Surface,
    rows: &[BuildRow],
    named: &str,
) -> Result<Result<Build, String>, SurfaceError> {
    if let Some(build) = of_idea(rows, named) {
        return Ok(Ok(build));
    }
    let told = unapproved(surface, named).await?;
    Ok(Err(told.unwrap_or_else(|| {
        let named = clip::letters(named, SAID_BACK);
        format!("There is no build of `{named}`; /ideas lists the ideas.")
    })))
}

/// Says that an idea has no build since its specification is not approved, where that is so.
async fn unapproved(surface: &Surface, named: &str) -> Result<Option<String>, SurfaceError> {
    let Ok(idea) = Slug::parse(named) else {
        return Ok(None);
    };
    let newest = specification::list(&surface.services.store, Some(&idea)).await?;
    let Some(newest) = newest.last() else {
        return Ok(None);
    };
    let next = match newest.specification.state {
        SpecState::Approved => return Ok(None),
        SpecState::Draft => {
            "it is being written, and you are asked before anything is built".into()
        }
        SpecState::Generated => {
            format!("/execute {idea} shows what its build comes to, and starts it")
        }
        SpecState::Rejected => format!("it was rejected, and /execute {idea} asks for another one"),
    };
    Ok(Some(format!(
        "The specification of `{idea}` is not approved; {next}."
    )))
}

/// Returns the newest build of an idea.
fn of_idea(rows: &[BuildRow], named: &str) -> Option<Build> {
    let of_it = |row: &&BuildRow| row.build.idea.as_str() == named;
    rows.iter().rfind(of_it).map(|row| row.build.clone())
}

/// Returns the only build that has not ended.
fn running(rows: Vec<BuildRow>) -> Result<Build, String> {
    let mut running = rows
        .into_iter()
        .filter(|row| row.build.completed_at.is_none());
    match (running.next(), running.next()) {
        (Some(row), None) => Ok(row.build),
        (Some(_), Some(_)) => Err("Several builds run; name the idea of one.".to_owned()),
        (None, _) => Err("No build runs; name the idea of the one that you mean.".to_owned()),
    }
}

/// Returns the only build that can be landed.
fn finished(rows: Vec<BuildRow>) -> Result<Build, String> {
    let mut finished = rows
        .into_iter()
        .filter(|row| landing::admits(&row.build).is_ok());
    match (finished.next(), finished.next()) {
        (Some(row), None) => Ok(row.build),
        (Some(_), Some(_)) => Err("Several builds can be landed; name the idea of one.".to_owned()),
        (None, _) => Err("No build can be landed.".to_owned()),
    }
}

/// Splits a text behind its first word.
fn split(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}
