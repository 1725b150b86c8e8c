//! Keeps the conversation of a job and decides what a reply leads to.

use std::sync::Arc;

use ropewalk_llm::{
    Block, Message, ModelRequest, Reply, Role, StopReason, ToolChoice, ToolUse, Usage,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::early::EarlyCalls;
use super::memory::{Memory, newest};
use super::progress::Progress;
use super::repair::repair;
use super::repetition::Repetition;
use super::tool_calls::{self, Calls, ToolResults};
use super::{SAYS, is_whole};
use crate::compaction::{message_tokens, request_tokens};
use crate::error::EngineError;
use crate::event::{JobEvent, Observer};
use crate::job::{Job, Outcome};
use crate::submission::{Intake, Submission};
use crate::tool::malformed;

/// So many replies in a row that call nothing end a job that has a result to hand in.
const ONLY_TEXT: u32 = 3;
/// The tool of a role that may put questions.
const ASK: &str = "ask";
/// So many of the newest messages stay beside a summary.
pub(super) const KEPT: usize = 6;

/// Says what follows a reply.
#[derive(Debug)]
pub(super) enum Next {
    /// The model is asked again.
    Ask,
    /// The job has ended.
    End(Outcome),
}

/// Is a job on its way.
pub(super) struct Conversation<'a> {
    job: &'a Job,
    intake: Option<Arc<Intake<'a>>>,
    messages: Vec<Message>,
    /// So many of the first messages always stay.
    first: usize,
    /// Where the question stands that a long talk comes to, until it is told in the memory.
    question: Option<usize>,
    /// What stays of messages that are gone.
    memory: Memory,
    /// What the last reply was counted for, and how many messages there were with it.
    counted: (u64, usize),
    /// The calls that handed in the last result, after the results of the others of that reply.
    handed_in: Option<(Vec<Block>, Vec<ToolUse>)>,
    repetition: Repetition,
    progress: Progress,
    texts: Vec<String>,
    usage: Usage,
    /// What was used before the present try.
    spent: u64,
    turns: u32,
    tool_calls: u32,
    repairs: u32,
    only_text: u32,
    /// Whether the model is made to hand in its result with the next reply.
    must_submit: bool,
}

impl<'a> Conversation<'a> {
    /// Begins with the messages of the job, every call of theirs paired with a result.
    pub(super) fn new(job: &'a Job, intake: Option<Arc<Intake<'a>>>) -> Self {
        let mut messages = job.messages.clone();
        repair(&mut messages);
        Self {
            job,
            intake,
            first: first(messages.len()),
            question: (messages.len() > KEPT).then(|| messages.len() - 1),
            messages,
            memory: Memory::default(),
            counted: (0, 0),
            handed_in: None,
            repetition: Repetition::default(),
            progress: Progress::default(),
            texts: Vec::new(),
            usage: Usage::default(),
            spent: 0,
            turns: 0,
            tool_calls: 0,
            repairs: 0,
            only_text: 0,
            must_submit: false,
        }
    }

    /// Returns what was called before.
    pub(super) fn repetition(&self) -> &Repetition {
        &self.repetition
    }

    /// Returns what the model is to read.
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Estimates the tokens of `request`, which tells all messages. What a provider counted is nearer to the truth, as far
    /// as it goes.
    pub(super) fn size(&self, request: &ModelRequest) -> u64 {
        let (counted, until) = self.counted;
        let since = self.messages.get(until..).unwrap_or_default();
        request_tokens(request).max(counted + message_tokens(since))
    }

    /// Cuts long results that are old; says how many, and forgets that their files were read.
    pub(super) fn trim(&mut self) -> usize {
        let first = self.first.min(self.messages.len());
        let (cut, gone) = self.memory.trim(&mut self.messages[first..]);
        self.forget(cut > 0, &gone);
        cut
    }

    /// Returns the messages that a summary would take the place of.
    pub(super) fn older(&self, keep: usize) -> &[Message] {
        &self.messages[self.first..newest(&self.messages, self.first, keep)]
    }

    /// Returns what those who sum up are told.
    pub(super) fn summary(&self) -> Option<&str> {
        self.memory.summary()
    }

    /// Lets the messages go that are older than the newest `keep`, and tells in their place what `told` makes of what stays.
    pub(super) fn let_go(
        &mut self,
        keep: usize,
        summary: Option<String>,
        told: impl FnOnce(&Value) -> Result<String, EngineError>,
    ) -> Result<(), EngineError> {
        let begin = newest(&self.messages, self.first, keep);
        let kept = self.messages.split_off(begin);
        let dropped = self.messages.split_off(self.first);
        if dropped.is_empty() {
            self.messages.extend(kept);
            return Ok(());
        }
        if let Some(at) = self.question.take() {
            match at.checked_sub(begin) {
                Some(in_kept) => self.question = Some(in_kept),
                None => self.memory.asked(&dropped[at - self.first]),
            }
        }
        let gone = self.memory.outlast(&dropped, summary, &self.job.tools);
        let text = told(&self.memory.values(&kept))?;
        self.memory.recall(&mut self.messages, text);
        self.first = self.messages.len();
        self.question = self.question.map(|in_kept| self.first + in_kept);
        self.messages.extend(kept);
        self.forget(true, &gone);
        Ok(())
    }

    /// What was counted is true no more, and files whose text is gone are unread.
    fn forget(&mut self, changed: bool, gone: &[String]) {
        if changed {
            self.counted = (0, 0);
            self.job.tools.forget(gone);
        }
    }

    /// Counts what a summary has used.
    pub(super) fn pay(&mut self, usage: Usage) {
        self.usage += usage;
    }

    /// Refuses to go on when the tokens of the job are used up.
    pub(super) fn check_tokens(&self) -> Result<(), EngineError> {
        let used = self.used() - self.spent;
        match self.job.limits.total_tokens {
            Some(limit) if used >= limit => Err(EngineError::TokenLimit { used, limit }),
            _ => Ok(()),
        }
    }

    fn used(&self) -> u64 {
        self.usage.total_input_tokens() + self.usage.output_tokens
    }

    /// Answers the calls that handed in the last result, so that the model can mend it; another try begins.
    pub(super) fn reopen(&mut self, told: &str) {
        if let Some((mut blocks, calls)) = self.handed_in.take() {
            self.memory.judged(told);
            blocks.extend(refusals(&calls, told));
            self.messages.push(Message::results(blocks));
        }
        self.texts.clear();
        self.repetition = Repetition::default();
        self.repairs = 0;
        self.only_text = 0;
        self.spent = self.used();
    }

    /// Tells how the next reply is asked for: what is said of this one has to agree with it.
    pub(super) const fn expects(&mut self, next: &ToolChoice) {
        self.must_submit = matches!(next, ToolChoice::Tool(_));
    }

    /// Returns how often the result of this try was sent back.
    pub(super) const fn repairs(&self) -> u32 {
        self.repairs
    }

    /// Counts what was sent back before this try as its own.
    pub(super) const fn count_repairs(&mut self, repairs: u32) {
        self.repairs = repairs;
    }

    /// Answers the calls that handed in the last result, which held.
    pub(super) fn accept(&mut self, told: &str) {
        if let Some((mut blocks, calls)) = self.handed_in.take() {
            blocks.extend(answers(&calls, told, false));
            self.messages.push(Message::results(blocks));
        }
    }

    /// Adds what a person says to what the model reads next.
    pub(super) fn say(&mut self, words: &str) {
        let told = Block::Text(format!("{SAYS}{words}"));
        match self.messages.last_mut() {
            Some(last) if last.role == Role::User => last.blocks.push(told),
            _ => self.messages.push(Message {
                role: Role::User,
                blocks: vec![told],
            }),
        }
    }

    /// Acts on a reply: runs its tools, takes its result, or ends.
    pub(super) async fn hear(
        &mut self,
        reply: Reply,
        early: EarlyCalls<'_>,
        cancel: &CancellationToken,
        observer: &dyn Observer,
    ) -> Result<Next, EngineError> {
        self.turns += 1;
        self.usage += reply.usage;
        let said = reply.text();
        if !is_whole(&reply.stop) {
            return self.stop_early(said, reply.stop);
        }
        let counted = reply.usage.total_input_tokens() + reply.usage.output_tokens;
        let calls: Vec<ToolUse> = reply.tool_uses().cloned().collect();
        let stop = reply.stop;
        // A provider refuses an empty message.
        if !reply.blocks.is_empty() {
            self.messages.push(Message::assistant(reply.blocks));
        }
        self.counted = (counted, self.messages.len());
        if calls.is_empty() {
            self.hear_text(said, stop, observer)
        } else {
            self.only_text = 0;
            self.texts.push(said);
            let calls = (calls.as_slice(), early);
            self.hear_calls(calls, stop, cancel, observer).await
        }
    }

    fn stop_early(&mut self, said: String, stop: StopReason) -> Result<Next, EngineError> {
        self.texts.push(said);
        if self.intake.is_some() {
            Err(EngineError::Stopped {
                reason: stop,
                text: self.text(),
            })
        } else {
            Ok(Next::End(self.outcome(None, stop)))
        }
    }

    /// Words alone end a job that is to end with words. In any other the model is told how to go on and chooses itself:
    /// made to call, it would hand in what is not done, or leave a question unasked.
    fn hear_text(
        &mut self,
        said: String,
        stop: StopReason,
        observer: &dyn Observer,
    ) -> Result<Next, EngineError> {
        self.texts.push(said);
        let Some(intake) = self.intake.clone() else {
            return Ok(Next::End(self.outcome(None, stop)));
        };
        self.only_text += 1;
        if self.only_text == ONLY_TEXT {
            return Err(EngineError::OnlyText {
                replies: ONLY_TEXT,
                text: self.text(),
            });
        }
        let advice = advice(self.job, intake.submission(), self.must_submit);
        observer.see(JobEvent::Advised {
            text: advice.clone(),
        });
        self.messages.push(Message::user(advice));
        Ok(Next::Ask)
    }

    async fn hear_calls(
        &mut self,
        (calls, early): (&[ToolUse], EarlyCalls<'_>),
        stop: StopReason,
        cancel: &CancellationToken,
        observer: &dyn Observer,
    ) -> Result<Next, EngineError> {
        let (submitted, ordinary): (Vec<ToolUse>, Vec<ToolUse>) =
            calls.iter().cloned().partition(|call| self.takes(call));
        let run = ordinary.iter().take(self.job.limits.calls_per_turn);
        let circles: Vec<bool> = run.map(|call| self.repetition.repeats(call)).collect();
        let called = Calls {
            all: &ordinary,
            circles: &circles,
            early,
        };
        let ran = tool_calls::run(self.job, called, &mut self.progress, cancel, observer).await?;
        self.tool_calls += ran.count;
        for (call, output) in &ran.outputs {
            self.memory.note(call, output);
        }
        let outputs = ran.outputs.iter().map(|(_, output)| output);
        for ((call, closes), output) in ordinary.iter().zip(&circles).zip(outputs) {
            if self.repetition.is_lost(*closes && output.is_error) {
                return Err(EngineError::DoomLoop {
                    tool: call.name.clone(),
                });
            }
        }
        if !ordinary.is_empty() && submitted.is_empty() {
            self.texts.clear();
        }
        if let (Some(intake), Some(call)) = (self.intake.clone(), submitted.first()) {
            let next = self.hear_submission(&intake, call, &submitted, ran, stop);
            observer.see(taken(call, &next));
            return next;
        }
        self.messages.push(Message::results(ran.blocks));
        Ok(Next::Ask)
    }

    fn takes(&self, call: &ToolUse) -> bool {
        let intake = self.intake.as_ref();
        intake.is_some_and(|intake| intake.takes(&call.name))
    }

    /// A result counts only when all that was called before it went well: the model has to see what did not.
    fn hear_submission(
        &mut self,
        intake: &Intake<'_>,
        call: &ToolUse,
        submitted: &[ToolUse],
        ran: ToolResults,
        stop: StopReason,
    ) -> Result<Next, EngineError> {
        let verdict = if ran.failed {
            let reason = "another call of this reply failed, so this one was not taken; read its result first";
            self.push_results(ran.blocks, submitted, reason);
            return Ok(Next::Ask);
        } else if call.malformed {
            Err(vec![malformed(call)])
        } else {
            intake.check(&call.input)
        };
        match verdict {
            Ok(()) => {
                self.handed_in = Some((ran.blocks, submitted.to_vec()));
                Ok(Next::End(self.outcome(Some(call.input.clone()), stop)))
            }
            Err(errors) => {
                let advice = format!(
                    "not accepted; mend this and call again: {}",
                    errors.join("; ")
                );
                let mut blocks = ran.blocks;
                blocks.extend(refusals(submitted, &advice));
                self.send_back(intake, errors, Message::results(blocks))
            }
        }
    }

    fn push_results(&mut self, mut blocks: Vec<Block>, submitted: &[ToolUse], reason: &str) {
        blocks.extend(refusals(submitted, reason));
        self.messages.push(Message::results(blocks));
    }

    /// Asks for the result once more, unless the repairs are used up.
    fn send_back(
        &mut self,
        intake: &Intake<'_>,
        errors: Vec<String>,
        message: Message,
    ) -> Result<Next, EngineError> {
        let submission = intake.submission();
        if self.repairs >= submission.repairs {
            return Err(EngineError::Submission {
                name: submission.name.clone(),
                tries: self.repairs + 1,
                errors,
            });
        }
        self.repairs += 1;
        self.messages.push(message);
        Ok(Next::Ask)
    }

    fn outcome(&self, submission: Option<Value>, stop: StopReason) -> Outcome {
        Outcome {
            text: self.text(),
            submission,
            turns: self.turns,
            tool_calls: self.tool_calls,
            usage: self.usage,
            stop,
        }
    }

    fn text(&self) -> String {
        let said: Vec<&str> = self
            .texts
            .iter()
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
            .collect();
        said.join("\n\n")
    }
}

/// Says how many of the messages that a job begins with always stay: all, where it does not bring a long talk along.
fn first(messages: usize) -> usize {
    if messages <= KEPT { messages } else { 1 }
}

/// Tells whether a result was taken.
fn taken(call: &ToolUse, next: &Result<Next, EngineError>) -> JobEvent {
    let item = call.id.clone();
    let reason = match next {
        Ok(Next::End(_)) => {
            return JobEvent::ResultTaken {
                item,
                result: call.input.clone(),
            };
        }
        Ok(Next::Ask) => "it was sent back to be mended".to_owned(),
        Err(error) => error.to_string(),
    };
    JobEvent::ResultRefused { item, reason }
}

/// Tells a model that called nothing what it can do; where it is made to hand in its result next, nothing else.
fn advice(job: &Job, submission: &Submission, must_submit: bool) -> String {
    let finish = &submission.name;
    // Who may put a question with the result is told where.
    let may_ask = submission.schema["properties"]["question"].is_object();
    let or_asks = if may_ask {
        ", or with a `question` that has to be answered first"
    } else {
        ""
    };
    if must_submit || job.tools.is_empty() {
        format!("Nothing was handed in yet. Call `{finish}` with your result{or_asks}.")
    } else if job.tools.contains(ASK) {
        format!(
            "No tool was called. Go on with your tools, put a question with `{ASK}`, or call `{finish}` when the work is done."
        )
    } else {
        format!(
            "No tool was called. Go on with your tools, or call `{finish}` when the work is done{or_asks}."
        )
    }
}

fn refusals<'b>(calls: &'b [ToolUse], reason: &'b str) -> impl Iterator<Item = Block> + 'b {
    answers(calls, reason, true)
}

fn answers<'b>(
    calls: &'b [ToolUse],
    told: &'b str,
    is_error: bool,
) -> impl Iterator<Item = Block> + 'b {
    calls.iter().map(move |call| Block::ToolResult {
        tool_use_id: call.id.clone(),
        content: told.to_owned(),
        is_error,
        images: Vec::new(),
    })
}
