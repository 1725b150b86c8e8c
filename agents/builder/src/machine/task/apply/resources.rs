//! What comes and goes beside a task: files, quota, budget, its build.

use ropewalk_schemas::RepoPath;
use ropewalk_schemas::task::ChangeRequestState;

use super::{Arm, Blocker, On, State, Transition};
use crate::machine::task::{Files, Input};

impl Transition {
    /// Applies what became of something that a task waits for.
    pub(super) fn resources(&mut self, input: Input) -> Arm {
        let State::Waiting { on, .. } = self.from.clone() else {
            return self.without_wait(input);
        };
        match (on, input) {
            (On::Files(_), Input::Obstruct { by, told }) => self.obstruct(by, told),
            (On::Files(by), Input::FilesFree) => {
                if by == Files::Owned {
                    self.close_questions("what it waited for is free");
                }
                self.ready("ready; what it waited for is free");
            }
            (On::Quota { until }, Input::Tick) if until.is_none_or(|due| due <= self.now) => {
                self.ready("ready; the quota is back");
            }
            (On::Outage, Input::ProviderBack) => self.ready("ready; the provider answers again"),
            (On::Budget { .. }, Input::Fund) => self.ready("ready; there is budget again"),
            (
                On::Check { .. } | On::Quota { .. } | On::Budget { .. } | On::Outage,
                Input::Resume,
            ) => {
                self.ready("ready; the build was resumed");
            }
            (_, Input::HandOver { file, why }) => {
                // What is asked about another file stands until that is decided, too.
                if !self.asks_beside(&file) {
                    self.close_questions("the file was handed over");
                }
                self.ready(format!("ready; `{file}` was handed over: {why}"));
            }
            (On::Files(Files::Owned), Input::ChangeOwner { file }) => {
                self.ready(format!("ready; `{file}` has another owner"));
            }
            (_, Input::Deny { why }) => self.deny(&why),
            // What a person was asked stays asked, with the work that it is about.
            (On::Person { .. }, Input::LayDown) => {}
            (_, Input::LayDown) => self.lay_down(),
            (_, input) => return self.refuse(&input),
        }
        Ok(())
    }

    fn without_wait(&mut self, input: Input) -> Arm {
        match (&self.from, input) {
            (State::Ready { .. }, Input::Obstruct { by, told }) => self.obstruct(by, told),
            (State::Ready { .. }, Input::LayDown) => self.lay_down(),
            // One file was handed over, and here is what was decided about the next.
            (State::Ready { .. }, Input::HandOver { file, .. }) => {
                if !self.asks_beside(&file) {
                    self.close_questions("the file was handed over");
                }
            }
            (State::Ready { .. }, Input::Deny { why }) => self.deny(&why),
            (State::Running { .. }, input) => return self.refuse(&input),
            (_, Input::LayDown) => {}
            (_, input) => return self.refuse(&input),
        }
        Ok(())
    }

    /// Returns whether an owner was asked for another file, and that is not decided.
    fn asks_beside(&self, file: &RepoPath) -> bool {
        let requests = self.task.change_requests.iter();
        let mut open = requests.filter(|request| request.state == ChangeRequestState::Requested);
        open.any(|request| request.file.key() != file.key())
    }

    fn deny(&mut self, why: &str) {
        self.close_questions("the change was refused");
        let by = Blocker::Owner;
        let reason = format!("the file stays with its owner: {why}");
        self.go(State::Blocked { by }, Some(reason));
        self.task.wants_files_since = None;
    }

    fn obstruct(&mut self, by: Files, told: String) {
        self.task.wants_files_since.get_or_insert(self.now);
        self.wait(On::Files(by), told);
    }

    /// Nothing of a stopped build waits for anybody any more.
    fn lay_down(&mut self) {
        let reason = "pending; the build was stopped before it".to_owned();
        self.go(State::Pending, Some(reason));
        self.task.wants_files_since = None;
    }
}
