//! Goes on in the conversation in which a question was put: its answer is the result of the call that asked.

use std::sync::Arc;

use ropewalk_engine::Engine;
use ropewalk_orchestrator::AgentError;

use super::context::Material;
use super::prompt::{self, EarlierDialogue};
use super::submission::{Draft, ModelSubmission};
use crate::failure;

/// Finds the conversations that led up to this one without a break: each ended in a question that was answered. The results
/// of their calls are made anew, and show the repository as it is now.
pub(super) async fn find(
    engine: &Engine,
    material: &Material,
    repairs: u32,
) -> Result<EarlierDialogue, AgentError> {
    let mut earlier = none(material);
    for said in 0..prompt::said(material) {
        let job = prompt::exchange(material, &earlier.draft, (said, repairs));
        let recalled = engine.recall(&job).await;
        let recalled = recalled.map_err(|error| failure::of_job(&error))?;
        match recalled.zip(answer(&earlier, material)) {
            Some((recalled, (index, told))) => {
                earlier.turns.extend(recalled.answered(&told));
                earlier.answered.push(index);
            }
            None => earlier = none(material),
        }
    }
    Ok(earlier)
}

fn none(material: &Material) -> EarlierDialogue {
    let stands = material.previous.as_ref().map(prompt::stands);
    EarlierDialogue {
        turns: Vec::new(),
        answered: Vec::new(),
        draft: Arc::new(Draft::new(material.facts.clone(), stands)),
    }
}

/// Returns the answer to the question that was handed in last, where there is one that stands nowhere yet.
fn answer(earlier: &EarlierDialogue, material: &Material) -> Option<(usize, String)> {
    let Some(ModelSubmission::Question(question)) = earlier.draft.taken() else {
        return None;
    };
    let mut answers = material.answers.iter().enumerate();
    let (index, (_, answer)) = answers.find(|(index, (asked, _))| {
        asked == question.text.trim() && !earlier.answered.contains(index)
    })?;
    Some((index, format!("The answer: {answer}")))
}
