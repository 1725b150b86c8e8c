//! Does what a command asks for about a build, by the verbs of `desk`.

mod roll;

use std::time::Duration;

use ropewalk_desk::builds::landing::{self, Landing, LandingView};
use ropewalk_desk::builds::{self, Wish, tasks};
use ropewalk_desk::phones;
use ropewalk_runtime::token;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::illegal;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::phone::LandingOffer;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wish::Wish as WishOfBranch;
use ropewalk_schemas::{Payload, Priority, Slug, TaskId};
use ropewalk_store::{ReadError, Store, task_key};

use crate::keyboard;
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom, told_already};
use crate::words::refusal;
use roll::{BuildChoice, choose, unbuilt};

pub(crate) use roll::BuildRoll;

/// How long a look at what a landing comes to may take: whoever says something else meanwhile waits for it.
const PREVIEW: Duration = Duration::from_secs(5);
/// What can be decided about a landing, in the order of its buttons.
const LANDINGS: [(&str, Landing); 2] = [
    ("Land it", Landing::Land),
    ("Resolve conflicts first", Landing::Resolve),
];

/// What is said where there is no build at all.
const NO_BUILD: &str = "There is no build yet.";

/// Passes on what somebody wants of a whole build: of the one that can do it.
pub(crate) async fn steer(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
    wish: Wish,
) -> Result<Answer, SurfaceError> {
    let store = &surface.services.store;
    let roll = BuildRoll::load(store).await?;
    let pool = match roll.meant(store, rest).await? {
        Ok(pool) => pool,
        Err(told) => return Ok(told.into()),
    };
    let recorded = |build: &Build, does: &str| {
        let name = roll.name(build);
        Answer::from(format!("Recorded: the build of {name} {does}."))
    };
    // It may have done so since, and would leave the choice to another one.
    if let Some(build) = steered_already(surface, whom, &pool, wish).await? {
        return Ok(recorded(build, does(wish, false)));
    }
    let person = &whom.person;
    let can = |build: &Build| builds::admits(build, wish, person).is_ok();
    let is_meant = |build: &Build| !rest.is_empty() || is_likely(wish, build);
    let open = |build: &Build| can(build) && !wish.is_fulfilled(build);
    // One that was wished to do so a moment ago may not show it yet, so that it is wished again where nothing else is meant.
    let choice = match choose(&pool, |build| open(build) && is_meant(build)) {
        BuildChoice::Nothing => match choose(&pool, can) {
            BuildChoice::One(build) if open(build) => BuildChoice::Several(vec![build]),
            choice => choice,
        },
        choice => choice,
    };
    let build = match choice {
        BuildChoice::One(build) => build,
        BuildChoice::Several(several) if several.iter().any(|build| !wish.is_fulfilled(build)) => {
            return Ok(BuildRoll::which(typed(wish), &several, false));
        }
        BuildChoice::Several(_) if wish == Wish::Pause => {
            return Ok("Every build that runs pauses already.".to_owned().into());
        }
        BuildChoice::Several(_) | BuildChoice::Nothing => {
            let newest = pool
                .last()
                .filter(|_| !rest.is_empty() || person.demand(Right::Stop).is_err());
            let refused = newest.and_then(|build| {
                let refused = builds::admits(build, wish, person).err()?;
                Some(refusal::steer(&refused, build))
            });
            return Ok(refused.unwrap_or_else(|| idle(wish).to_owned()).into());
        }
    };
    let does = does(wish, wish.is_fulfilled(build));
    let steered = builds::steer(&surface.context(), build, wish, person, None).await;
    Ok(match steered {
        Ok(_) => recorded(build, does),
        Err(error) => refusal::steer(&error, build).into(),
    })
}

/// Returns whether somebody may mean a build that they do not name: what failed, or ended by itself, goes on for no bare wish.
fn is_likely(wish: Wish, build: &Build) -> bool {
    match wish {
        Wish::Pause | Wish::Stop => true,
        Wish::Resume => {
            build.pause_requested
                || build.state == BuildState::Paused
                || build.stop == Some(StopCause::Person)
        }
    }
}

/// Returns the build of which an earlier try had recorded the wish.
async fn steered_already<'r>(
    surface: &Surface,
    whom: &Whom,
    pool: &[&'r Build],
    wish: Wish,
) -> Result<Option<&'r Build>, SurfaceError> {
    let event_type = match wish {
        Wish::Pause => "build.pause",
        Wish::Resume => "build.resume",
        Wish::Stop => "build.stop",
    };
    for build in pool.iter().copied() {
        let is_it = |payload: &Payload| {
            matches!(payload, Payload::BuildPause(asked) | Payload::BuildResume(asked) | Payload::BuildStop(asked)
                if asked.build_id == build.id && asked.requested_by == *whom.person.name.as_str())
        };
        if told_already(surface, whom, build.correlation_id, event_type, is_it).await? {
            return Ok(Some(build));
        }
    }
    Ok(None)
}

/// Returns the command by which something is wished of a build.
const fn typed(wish: Wish) -> &'static str {
    match wish {
        Wish::Pause => "/pause",
        Wish::Resume => "/resume",
        Wish::Stop => "/stop",
    }
}

/// Says what a build does by a wish.
const fn does(wish: Wish, is_fulfilled: bool) -> &'static str {
    match wish {
        Wish::Pause => "pauses",
        Wish::Resume if is_fulfilled => "goes on; it runs already",
        Wish::Resume => "goes on",
        Wish::Stop => "stops",
    }
}

/// Says that no build can do what is wished.
const fn idle(wish: Wish) -> &'static str {
    match wish {
        Wish::Pause | Wish::Stop => "No build runs.",
        Wish::Resume => "No build stands still that could go on.",
    }
}

/// Asks for another try of a task, perhaps with advice.
pub(crate) async fn retry(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<Answer, SurfaceError> {
    let store = &surface.services.store;
    let roll = BuildRoll::load(store).await?;
    let (pool, rest) = match of_task(store, &roll, rest).await? {
        Ok(meant) => meant,
        Err(told) => return Ok(told.into()),
    };
    let (task, advice) = split(rest);
    let Ok(task) = TaskId::parse(task) else {
        let told = "Name the task: /retry walks T-002 what to do differently";
        return Ok(told.to_owned().into());
    };
    let advice = (!advice.is_empty()).then(|| advice.to_owned());
    let recorded = |build: &Build| {
        let name = roll.name(build);
        Answer::from(format!("Recorded: another try of {task} of {name}."))
    };
    let mut able = Vec::new();
    for build in pool.iter().copied() {
        let is_it = |payload: &Payload| {
            matches!(payload, Payload::TaskRetry(asked)
                if asked.build_id == build.id && asked.task_id == task && asked.guidance == advice
                    && asked.requested_by == *whom.person.name.as_str())
        };
        if told_already(surface, whom, build.correlation_id, "task.retry", is_it).await? {
            return Ok(recorded(build));
        }
        let row = store.get::<Task>(&task_key(build.id, &task)).await?;
        let can = row.is_some_and(|row| tasks::can_retry(build, &row, &whom.person));
        able.extend(can.then_some(build));
    }
    let build = match (able.as_slice(), pool.last()) {
        // Why it is not tried again is said of the newest.
        ([build], _) | ([], Some(build)) => *build,
        ([], None) => return Ok(NO_BUILD.to_owned().into()),
        (several, _) => return Ok(BuildRoll::which("/retry", several, true)),
    };
    let asked = tasks::retry(&surface.context(), build, &task, &whom.person, advice).await;
    Ok(match asked {
        Ok(_) => recorded(build),
        Err(error) => refusal::task(&error, build, &surface.people).into(),
    })
}

/// Returns the builds that a text begins by naming, with what is said of them; all of them where it begins by a task.
async fn of_task<'r, 't>(
    store: &Store,
    roll: &'r BuildRoll,
    text: &'t str,
) -> Result<Result<(Vec<&'r Build>, &'t str), String>, ReadError> {
    let (first, behind) = split(text);
    let called = roll.called(first);
    if !called.is_empty() {
        return Ok(Ok((called, behind)));
    }
    // No idea is called so.
    let mut is_task = Slug::parse(first).is_err();
    if let (Ok(task), false) = (TaskId::parse(first), is_task) {
        for build in roll.all() {
            let key = task_key(build.id, &task);
            is_task |= store.get::<Task>(&key).await?.is_some();
        }
    }
    if is_task {
        return Ok(Ok((roll.all(), text)));
    }
    let meant = roll.meant(store, first).await?;
    Ok(meant.map(|pool| (pool, behind)))
}

/// Says something to the models that work on a build: the one that is named, else the only one that has not ended. What is said
/// may begin with any word, so that a name is a whole one.
pub(crate) async fn tell(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<Answer, SurfaceError> {
    let store = &surface.services.store;
    let roll = BuildRoll::load(store).await?;
    let (first, behind) = split(rest);
    let called = roll.called(first);
    if called.is_empty()
        && let Some(told) = unbuilt(store, first).await?
    {
        return Ok(told.into());
    }
    let is_named = !called.is_empty();
    let (pool, said) = if is_named {
        (called, behind)
    } else {
        (roll.all(), rest)
    };
    let hears = |build: &Build| build.completed_at.is_none() && build.continued_by.is_none();
    let build = match (choose(&pool, hears), pool.last().filter(|_| is_named)) {
        (BuildChoice::One(build), _) => build,
        (BuildChoice::Several(several), _) => {
            return Ok(BuildRoll::which("/tell", &several, true));
        }
        (BuildChoice::Nothing, Some(newest)) => *newest,
        (BuildChoice::Nothing, None) => {
            let told = "No build runs. Name the idea whose build hears it: /tell walks use metres";
            return Ok(told.to_owned().into());
        }
    };
    told_to(surface, whom, (build, &roll.name(build)), said).await
}

/// Says something to the models that work on a build, or on the task of it that a text begins by naming.
async fn told_to(
    surface: &Surface,
    whom: &Whom,
    (build, name): (&Build, &str),
    said: &str,
) -> Result<Answer, SurfaceError> {
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
    if told_already(surface, whom, build.correlation_id, "build.tell", is_it).await? {
        let told = format!("Recorded: whoever works on {name} hears it.");
        return Ok(told.into());
    }
    let told = tasks::tell(&surface.context(), build, task, &whom.person, text).await;
    let told = match told {
        Ok(hearing) => {
            let hearing: Vec<&str> = hearing.iter().map(TaskId::as_str).collect();
            let hearing = hearing.join(", ");
            format!("Recorded: whoever works on {hearing} of {name} hears it.")
        }
        Err(error) => refusal::task(&error, build, &surface.people),
    };
    Ok(told.into())
}

/// Says how urgent a build is.
pub(crate) async fn rank(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<Answer, SurfaceError> {
    let store = &surface.services.store;
    let roll = BuildRoll::load(store).await?;
    let (first, behind) = split(rest);
    let (pool, number) = if behind.is_empty() && roll.called(first).is_empty() {
        (roll.all(), first)
    } else {
        match roll.meant(store, first).await? {
            Ok(pool) => (pool, behind),
            Err(told) => return Ok(told.into()),
        }
    };
    let number = number.parse::<u8>().ok();
    let Some(priority) = number.and_then(|number| Priority::new(number).ok()) else {
        let unbuilt = if roll.called(first).is_empty() {
            unbuilt(store, first).await?
        } else {
            None
        };
        let how = || "Say how urgent, from 1 (highest) to 10: /priority walks 2".to_owned();
        return Ok(unbuilt.unwrap_or_else(how).into());
    };
    let can = |build: &Build| illegal::rank(build).is_ok() && build.completed_at.is_none();
    let build = match (choose(&pool, can), pool.last()) {
        (BuildChoice::One(build), _) => build,
        (BuildChoice::Several(several), _) => {
            return Ok(BuildRoll::which("/priority", &several, true));
        }
        (BuildChoice::Nothing, Some(newest)) => *newest,
        (BuildChoice::Nothing, None) => return Ok(NO_BUILD.to_owned().into()),
    };
    let ranked = builds::rank(&surface.context(), build, priority, &whom.person).await;
    let told = match ranked {
        Ok(()) => format!(
            "Recorded: the build of {} has priority {}.",
            roll.name(build),
            priority.get()
        ),
        Err(error) => refusal::steer(&error, build),
    };
    Ok(told.into())
}

/// Shows what landing a build comes to, with buttons that decide it.
pub(crate) async fn land(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<Answer, SurfaceError> {
    if let Err(forbidden) = whom.person.demand(Right::Land) {
        return Ok(refusal::forbidden(&forbidden, &surface.people).into());
    }
    let store = &surface.services.store;
    let roll = BuildRoll::load(store).await?;
    let pool = match roll.meant(store, rest).await? {
        Ok(pool) => pool,
        Err(told) => return Ok(told.into()),
    };
    let can = |build: &Build| landing::admits(build).is_ok();
    match (choose(&pool, can), pool.last().filter(|_| !rest.is_empty())) {
        (BuildChoice::One(build), _) => offer(surface, whom, build, &roll.name(build)).await,
        (BuildChoice::Several(several), _) => Ok(BuildRoll::which("/land", &several, false)),
        (BuildChoice::Nothing, newest) => {
            let refused = newest.and_then(|build| {
                let refused = landing::admits(build).err()?;
                Some(refusal::landing(&refused, build))
            });
            let told = refused.unwrap_or_else(|| "No build can be landed.".to_owned());
            Ok(told.into())
        }
    }
}

/// Offers to land a build.
async fn offer(
    surface: &Surface,
    whom: &Whom,
    build: &Build,
    name: &str,
) -> Result<Answer, SurfaceError> {
    let prospect = landing::prospect(&surface.services.store, build).await?;
    let (comes_to, onto) = match preview(surface, build).await {
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
        until: context.now() + keyboard::OFFERED,
    };
    phones::change(&context, &whom.person.name, |phone| {
        phone.landing = Some(offer.clone());
    })
    .await?;
    let labels = LANDINGS.map(|(label, _)| label);
    Ok(Answer {
        text: format!("**Land the build of {name}?**\n\n{prospect}\n\n{comes_to}"),
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

/// Takes a press of a button that decides a landing, by its place below a message.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    (message, place): (i32, usize),
    offer: LandingOffer,
) -> Result<PressAnswer, SurfaceError> {
    let store = &surface.services.store;
    let (Some((_, landing)), Some(build)) = (
        LANDINGS.get(place),
        store.get::<Build>(&offer.build.to_string()).await?,
    ) else {
        return Ok("This button means nothing.".to_owned().into());
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
    Ok(PressAnswer {
        line: told,
        reply: Some(surface.in_place(whom.chat, message, stands)),
        // It decides once, whatever came of it.
        decided: Some(offer.nonce),
    })
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
    told_already(surface, whom, build.correlation_id, "build.merged", is_it).await
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

/// Splits a text behind its first word.
fn split(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}
