//! What people see of the questions of a build, and say to them.

use ropewalk_orchestrator::questions;
use ropewalk_schemas::QuestionId;
use ropewalk_schemas::question::{About, Question};
use ropewalk_store::{Query, Versioned};

use crate::world::project::OpenProject;

impl OpenProject {
    /// Answers the open question about a task.
    pub(crate) async fn answer(&self, task: &str, text: &str) {
        let question = self.open_question(task).await.expect("an open question");
        self.answer_question(question.id, text).await;
    }

    /// Answers the open question about a whole build.
    pub(crate) async fn answer_about_build(&self, text: &str) {
        let query = Query::new().equal("state", "pending");
        let open = self.services.store.list::<Question>(query).await.unwrap();
        let question = open
            .iter()
            .find(|question| matches!(question.about, About::Build { .. }))
            .expect("an open question about a build");
        self.answer_question(question.id, text).await;
    }

    /// Returns the open question about a task.
    pub(crate) async fn open_question(&self, task: &str) -> Option<Question> {
        let query = Query::new().equal("state", "pending");
        let open = self.services.store.list::<Question>(query).await.unwrap();
        open.into_iter()
            .map(|question| question.record)
            .find(|question| {
                matches!(&question.about, About::Task { task: about, .. } if about.as_str() == task)
            })
    }

    /// Lists the questions of a trigger, in the order in which they were asked.
    pub(crate) async fn questions(&self, trigger: &str) -> Vec<Question> {
        let query = Query::new().equal("trigger", trigger).order_by("asked_at");
        let rows = self.services.store.list::<Question>(query).await.unwrap();
        rows.into_iter().map(Versioned::into_inner).collect()
    }

    /// Answers a question as a person.
    pub(crate) async fn answer_question(&self, id: QuestionId, text: &str) {
        questions::answer(&self.context, id, text, "ada", "cli")
            .await
            .unwrap();
    }
}
