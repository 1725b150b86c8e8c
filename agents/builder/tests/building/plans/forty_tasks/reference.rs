//! A list scheduler that knows how long everything takes and never looks twice: what a build is measured against.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use ropewalk_builder::decide::order::claimable;
use ropewalk_builder::decide::readiness::edges;
use ropewalk_builder::machine::task::{Input, apply};
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::task::{Task, TaskState};

/// One attempt as it was: how many milliseconds it took, and from when on the next one could begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) millis: i64,
    /// So long after its end at the earliest.
    pub(crate) rest: i64,
    /// Not before this, counted from the start of the build: a person was asked.
    pub(crate) not_before: i64,
}

/// Returns when the last attempt ends, in milliseconds from the start, with `loops` loops.
///
/// `tasks` are as they were planned; `ends` says what becomes of each after its last stretch.
pub(crate) fn makespan(
    mut tasks: Vec<Task>,
    stretches: &HashMap<String, Vec<Stretch>>,
    ends: &HashMap<String, TaskState>,
    loops: usize,
) -> i64 {
    let anybody = ComponentName::parse("loop-1").unwrap();
    let mut done: HashMap<String, usize> = HashMap::new();
    let mut running: Vec<(i64, String)> = Vec::new();
    let (mut now, mut last) = (0, 0);
    loop {
        settle(&mut tasks, now);
        while running.len() < loops {
            let Some(next) = next(&tasks, &running, &anybody, now) else {
                break;
            };
            let stretch = stretches[&next][*done.entry(next.clone()).or_default()];
            running.push((now + stretch.millis, next.clone()));
            of(&mut tasks, &next).state = TaskState::Working;
        }
        let Some(ended) = running.iter().map(|(at, _)| *at).min() else {
            let Some(due) = tasks.iter().filter_map(|task| rests_until(task, now)).min() else {
                return last;
            };
            now = due;
            continue;
        };
        let due = tasks.iter().filter_map(|task| rests_until(task, now)).min();
        now = due.unwrap_or(ended).min(ended);
        let finished: Vec<String> = running
            .extract_if(.., |(at, _)| *at <= now)
            .map(|(_, name)| name)
            .collect();
        for name in finished {
            last = now;
            let number = done.entry(name.clone()).or_default();
            let stretch = stretches[&name][*number];
            *number += 1;
            let over = *number == stretches[&name].len();
            let task = of(&mut tasks, &name);
            task.state = if over { ends[&name] } else { TaskState::Ready };
            let again = (now + stretch.rest).max(stretch.not_before);
            task.not_before = (!over).then(|| time(again));
        }
    }
}

fn time(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(millis).unwrap()
}

fn of<'a>(tasks: &'a mut [Task], name: &str) -> &'a mut Task {
    tasks
        .iter_mut()
        .find(|task| task.id.as_str() == name)
        .unwrap()
}

fn settle(tasks: &mut [Task], now: i64) {
    for (id, edges) in edges(tasks) {
        let task = of(tasks, id.as_str());
        (*task, _) = apply(task, Input::Edges(edges), time(now)).unwrap();
        task.not_before = task.not_before.filter(|due| *due > time(now));
    }
}

fn rests_until(task: &Task, now: i64) -> Option<i64> {
    let due = task.not_before?.timestamp_millis();
    (task.state == TaskState::Ready && due > now).then_some(due)
}

/// Returns the next task in the order of the build, whose files nobody has.
fn next(
    tasks: &[Task],
    running: &[(i64, String)],
    anybody: &ComponentName,
    now: i64,
) -> Option<String> {
    let taken = |task: &&Task| {
        running.iter().any(|(_, name)| {
            let other = tasks.iter().find(|other| other.id.as_str() == name);
            other.is_some_and(|other| other.block.file == task.block.file)
        })
    };
    claimable(tasks, anybody, time(now))
        .into_iter()
        .find(|task| !taken(task))
        .map(|task| task.id.to_string())
}
