//! A build with its tasks and all that lies around them in a store: attempts, waits, questions. What a commit brings is
//! there at once and together; what runs in a process dies with it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use rand::RngExt;
use rand::rngs::StdRng;
use ropewalk_builder::decide::counts::pausing;
use ropewalk_builder::decide::readiness::edges;
use ropewalk_builder::decide::step::{self, Step, StopLimits};
use ropewalk_builder::machine::task::{Input, State};
use ropewalk_builder::machine::{self, Ask, Effect, IllegalRequest, build};
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wait::Resource;
use ropewalk_schemas::{AttemptId, QuestionId};
use uuid::Uuid;

use crate::inputs::{self, PlayedInputs};
use crate::samples;

/// What is asked, and about whom: a task by its place, or the whole build.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum About {
    Task(usize, Ask),
    Budget(String),
    Branch,
    Landing,
    Risk(String),
}

pub(crate) struct World {
    pub(crate) now: DateTime<Utc>,
    pub(crate) build: Build,
    pub(crate) tasks: Vec<Task>,
    /// The open rows of attempts, with the places of their tasks.
    pub(crate) attempts: BTreeMap<AttemptId, usize>,
    /// The attempts that really run.
    pub(crate) running: BTreeSet<AttemptId>,
    /// Those of them that stand still until they get more files; the store knows it by the rows of their tasks.
    pub(crate) blocked: BTreeSet<AttemptId>,
    /// What tasks wait for, by their places; files are told apart by nobody here.
    pub(crate) waits: BTreeMap<usize, Vec<Option<Resource>>>,
    pub(crate) build_waits: Vec<Resource>,
    pub(crate) questions: BTreeMap<QuestionId, About>,
    /// What the last check of the whole found that a person may accept.
    pub(crate) risks: Vec<String>,
    pub(crate) loses_questions: bool,
    /// Whether the provider is away; the row of that is in the store, too.
    pub(crate) away: bool,
    pub(crate) played: PlayedInputs,
    made: u128,
}

impl World {
    pub(crate) fn new(chance: &mut StdRng, loses_questions: bool) -> Self {
        let count = chance.random_range(1..=6);
        let tasks = (1..=count).map(|number| {
            let needs: Vec<usize> = (1..number).filter(|_| chance.random_bool(0.3)).collect();
            samples::task(number, &needs)
        });
        Self {
            tasks: tasks.collect(),
            now: samples::noon(),
            build: samples::build(),
            attempts: BTreeMap::new(),
            running: BTreeSet::new(),
            blocked: BTreeSet::new(),
            waits: BTreeMap::new(),
            build_waits: Vec::new(),
            questions: BTreeMap::new(),
            risks: Vec::new(),
            loses_questions,
            away: false,
            played: PlayedInputs::default(),
            made: 0,
        }
    }

    pub(crate) fn fresh(&mut self) -> Uuid {
        self.made += 1;
        Uuid::from_u128(self.made)
    }

    pub(crate) fn state(&self, place: usize) -> State {
        State::of(&self.tasks[place])
    }

    /// Applies an input to a task and commits what it brings; what is refused changes nothing.
    pub(crate) fn task(&mut self, place: usize, input: Input) -> Result<(), IllegalRequest> {
        let name = inputs::of_task(&input);
        let (after, effects) = machine::task::apply(&self.tasks[place], input, self.now)?;
        self.played.of_tasks.insert(name);
        self.tasks[place] = after;
        for effect in effects {
            match effect {
                Effect::EndAttempt { attempt, .. } => {
                    self.attempts.remove(&attempt);
                    self.blocked.remove(&attempt);
                    self.waits.remove(&place);
                }
                Effect::StopWaiting => {
                    self.waits.remove(&place);
                }
                Effect::Wait(resource) => self.wait(place, Some(resource)),
                Effect::CloseQuestions { .. } => self
                    .questions
                    .retain(|_, about| !matches!(about, About::Task(other, _) if *other == place)),
                Effect::Ask(ask) => {
                    let question = QuestionId(self.fresh());
                    if !self.loses_questions {
                        self.questions.insert(question, About::Task(place, ask));
                    }
                    self.task(place, Input::Ask(question))?;
                }
                Effect::CloseBudgetQuestions { .. }
                | Effect::TellPaused { .. }
                | Effect::TellSkipped { .. } => {}
            }
        }
        Ok(())
    }

    /// Writes down that a task waits; for files where nothing else is named.
    pub(crate) fn wait(&mut self, place: usize, on: Option<Resource>) {
        let waits = self.waits.entry(place).or_default();
        if !waits.contains(&on) {
            waits.push(on);
        }
    }

    /// Applies an input to the build and commits what it brings; what is refused changes nothing.
    pub(crate) fn build(&mut self, input: build::Input) -> Result<(), IllegalRequest> {
        let name = inputs::of_build(&input);
        let (after, effects) = build::apply(&self.build, input, self.now)?;
        self.played.of_builds.insert(name);
        self.build = after;
        for effect in effects {
            match effect {
                Effect::StopWaiting => self.build_waits.clear(),
                Effect::Wait(resource) => self.build_waits.push(resource),
                Effect::CloseQuestions { .. } => {
                    self.close(|about| !matches!(about, About::Task(..)));
                }
                Effect::CloseBudgetQuestions { .. } => {
                    self.close(|about| matches!(about, About::Budget(_)));
                }
                Effect::EndAttempt { .. }
                | Effect::Ask(_)
                | Effect::TellPaused { .. }
                | Effect::TellSkipped { .. } => {}
            }
        }
        Ok(())
    }

    /// Applies an input to a task and another one to the build, or neither.
    pub(crate) fn both(
        &mut self,
        place: usize,
        input: Input,
        of_its_build: build::Input,
    ) -> Result<(), IllegalRequest> {
        build::apply(&self.build, of_its_build.clone(), self.now)?;
        self.task(place, input)?;
        self.build(of_its_build)
    }

    fn close(&mut self, is_meant: impl Fn(&About) -> bool) {
        self.questions.retain(|_, about| !is_meant(about));
        let open = |question: &QuestionId| self.questions.contains_key(question);
        let standing = self.build.question.filter(open);
        self.build(build::Input::Ask(standing)).unwrap();
    }

    /// Asks about the whole build, unless that is over. What is asked about a budget leaves what is asked about something else
    /// where it is, and so does one risk after another.
    pub(crate) fn ask(&mut self, about: About) {
        if build::holds_no_question(&self.build) {
            return;
        }
        let question = QuestionId(self.fresh());
        let standing = self.build.question.filter(|open| match about {
            About::Budget(_) => true,
            About::Risk(_) => matches!(self.questions.get(open), Some(About::Risk(_))),
            About::Task(..) | About::Branch | About::Landing => false,
        });
        self.questions.insert(question, about);
        let asked = standing.or(Some(question));
        self.build(build::Input::Ask(asked)).unwrap();
    }

    /// Settles the build as the scheduler does, until nothing changes.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            let before = (self.build.clone(), self.tasks.clone());
            self.settle_once();
            self.end_unwanted();
            if before == (self.build.clone(), self.tasks.clone()) {
                return;
            }
        }
        panic!("the build never settles: {:?}", self.build);
    }

    fn settle_once(&mut self) {
        use build::State::{Paused, Running, Stopped};
        let state = build::State::of(&self.build);
        if matches!(state, Running | Paused { .. } | Stopped { .. }) && !self.is_over() {
            for place in 0..self.tasks.len() {
                // What has not come yet is no mistake.
                drop(self.task(place, Input::Tick));
                if !self.away {
                    drop(self.task(place, Input::ProviderBack));
                }
            }
            for (task, edges) in edges(&self.tasks) {
                let place = self.tasks.iter().position(|other| other.id == task);
                self.task(place.unwrap(), Input::Edges(edges)).unwrap();
            }
        }
        let limits = StopLimits::default();
        let input = match step::next(&self.build, &self.tasks, &limits, self.now) {
            Step::Continue if self.build.pause_requested && state == Running => {
                let told = pausing(&self.tasks);
                build::Input::Count { told }
            }
            Step::Continue => return,
            Step::Pause { reason, detail } => build::Input::Rest {
                why: reason,
                detail,
            },
            Step::Resume => build::Input::GoOn,
            Step::Verify => build::Input::Verify,
            Step::Fail { reason } => build::Input::Fail { why: reason },
            Step::Stop { why, reason } => build::Input::Stop { why, told: reason },
            Step::Conclude => {
                for place in 0..self.tasks.len() {
                    self.task(place, Input::LayDown).unwrap();
                }
                build::Input::Conclude
            }
        };
        self.build(input).unwrap();
    }

    /// Ends the attempts that the store knows as running no more, as the scheduler does after each commit.
    fn end_unwanted(&mut self) {
        let stopped = self.build.state == BuildState::Stopped && !self.build.gives_way();
        for attempt in self.running.clone() {
            let place = self.attempts.get(&attempt).copied();
            if place.is_none() || stopped {
                self.running.remove(&attempt);
            }
            if let Some(place) = place.filter(|_| stopped) {
                self.cut_off(place);
            }
        }
    }

    fn cut_off(&mut self, place: usize) {
        let why = "cut off".to_owned();
        let (not_before, counts) = (None, false);
        let input = Input::CutOff {
            why,
            not_before,
            counts,
        };
        self.task(place, input).unwrap();
    }

    /// The process dies after some commit, and another one sets right what it left.
    pub(crate) fn crash(&mut self) {
        self.running.clear();
        self.blocked.clear();
        for (_, place) in self.attempts.clone() {
            self.cut_off(place);
        }
        self.build.working_since = None;
    }

    /// Returns whether no word lets the build go on: its idea was abandoned, or a later revision is built.
    pub(crate) fn is_given_up(&self) -> bool {
        let is_abandoned = self.build.stop == Some(StopCause::Abandoned);
        is_abandoned || self.build.continued_by.is_some()
    }

    /// Returns whether the build has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.build.completed_at.is_some()
    }

    pub(crate) fn is_active(&self) -> bool {
        self.tasks.iter().any(|task| task.state.is_active())
    }
}
