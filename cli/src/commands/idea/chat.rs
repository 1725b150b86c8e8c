//! Verb `idea chat`: a conversation about an idea, streamed, with what it has come to.

mod hearing;
mod spoken;
mod unanswered;

use std::collections::BTreeSet;
use std::io::IsTerminal;

use clap::Args;
use ropewalk_bus::LiveEvents;
use ropewalk_desk::ideas::{self, ChatError, is_abandoned};
use ropewalk_desk::views::idea::answer::Delta;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::clip;
use ropewalk_schemas::idea::{Author, Idea, IdeaState, Message, Phase, Session};
use ropewalk_schemas::{MessageId, QuestionId, SessionId, Slug, Subject};
use ropewalk_store::Query;
use serde::Serialize;
use tokio::io::{BufReader, Stdin};

use hearing::{Listener, TERMINAL_LINE, Utterance};
use spoken::{PartialReply, unsaid};
use unanswered::{positions, unanswered};

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;
use crate::output::{Output, Prose};
use crate::wiring::{Crew, Reach, UNHANDLED, Vigil, is_coloured};

/// Who answers.
const ROLE: &str = "ideation";

/// What stands before a reply.
const SPEAKS: &str = "ropewalk> ";
/// What is said once nothing is left to be talked about.
const LEAVE: &str = "Ctrl-D ends the chat";

/// So many lines that were not kept are shown, and so many letters of each.
const LINES_SHOWN: usize = 3;
const LETTERS_SHOWN: usize = 80;

/// The idea.
#[derive(Debug, Args)]
pub struct Chat {
    /// Its name, as `idea list` shows it, or how it begins.
    idea: IdeaText,
}

/// A reply with what the conversation has come to.
#[derive(Debug, Serialize)]
struct ChatReply {
    message: MessageId,
    text: String,
    phase: Phase,
    confidence: f64,
    captured: Vec<String>,
    waiting_for: Option<QuestionId>,
}

impl Chat {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let (reach, slug) = Reach::open(app, Crew::Ideation, &self.idea).await?;
        let talked = talk(app, &reach, &slug).await;
        let closed = reach.close().await;
        talked.and(closed)
    }
}

async fn talk(app: &App, reach: &Reach, slug: &Slug) -> Result<(), CliError> {
    reach.require(ROLE).await?;
    let mut conversation = Conversation::open(app, reach, slug).await?;
    let terminal = conversation.terminal;
    let mut listener = Listener::new(BufReader::new(tokio::io::stdin()), terminal);
    let talked = converse(&mut conversation, &mut listener).await;
    if talked.is_err() && !terminal {
        // Whoever wrote them into a pipe sees nothing of how far it came.
        let left = listener.left().await;
        unkept(&left).map_or(Ok(()), |told| app.output.note(&told))?;
    }
    talked
}

/// Takes what is said until nothing more comes, and shows the replies.
async fn converse(
    conversation: &mut Conversation<'_>,
    listener: &mut Listener<BufReader<Stdin>>,
) -> Result<(), CliError> {
    conversation.begin().await?;
    let (reach, output) = (conversation.reach, conversation.output);
    let terminal = conversation.terminal;
    let mut unanswered = Vec::new();
    let mut was_clear = false;
    loop {
        if terminal {
            let is_clear = conversation.phase == Phase::Complete;
            if is_clear && !was_clear {
                output.note(LEAVE)?;
            }
            was_clear = is_clear;
            output.prompt("\nyou> ");
        }
        let heard = tokio::select! {
            heard = listener.next() => heard,
            () = reach.stopped() => return Err(CliError::Cancelled),
        };
        match heard {
            Ok(Utterance::Message(text)) if text.trim().is_empty() => {}
            Ok(Utterance::Message(text)) => match conversation.say(&text).await {
                // What comes after it is said all the same, or it would be lost.
                Err(error) if error.report().code == UNHANDLED => {
                    if terminal {
                        output.note(&error.to_string())?;
                    } else {
                        unanswered.push(error);
                    }
                }
                said => said?,
            },
            Ok(Utterance::Order(word)) => output.note(&helped(&word, &conversation.idea))?,
            Ok(Utterance::Cut) => output.note(&cut(&conversation.idea))?,
            Ok(Utterance::End) => return ended(unanswered),
            Err(error) => {
                let text = (
                    format!("cannot read what you say: {error}"),
                    "write UTF-8 text",
                );
                return Err(CliError::refused("input", text));
            }
        }
    }
}

/// Says what else can be done, to whoever gives an order that there is not.
fn helped(word: &str, idea: &Slug) -> String {
    format!(
        "`{word}` was not said: all that you write is a message, and Ctrl-C ends the chat. `ropewalk idea show {idea}` shows \
         what the idea has come to, `ropewalk idea done {idea}` says that it is clear. Write `/{word}` to say it as it is."
    )
}

/// Says that the terminal has cut a line.
fn cut(idea: &Slug) -> String {
    format!(
        "nothing was said: the terminal has cut a line at {TERMINAL_LINE} bytes. Break it into shorter lines and paste them \
         together, or write it to a file: `ropewalk idea attach {idea} FILE`"
    )
}

/// Says which lines were not kept, if any.
fn unkept(left: &[String]) -> Option<String> {
    let shown = left.iter().take(LINES_SHOWN);
    let shown: Vec<String> = shown
        .map(|line| format!("`{}`", clip::line(line, LETTERS_SHOWN)))
        .collect();
    let more = match left.len().saturating_sub(LINES_SHOWN) {
        0 => String::new(),
        more => format!(" and {}", counted(more, "more line")),
    };
    (!left.is_empty()).then(|| format!("not kept: {}{more}", shown.join(", ")))
}

/// Ends the conversation about `slug`, and shows what is said last.
pub(super) async fn end(app: &App, reach: &Reach, slug: &Slug) -> Result<(), CliError> {
    reach.require(ROLE).await?;
    let mut conversation = Conversation::open(app, reach, slug).await?;
    conversation.begin().await?;
    let after = reach.store().last_sequence().await?;
    let said = ideas::finish(&reach.context()?, slug, &reach.person()?.name).await?;
    reach.wake()?;
    app.output.note("that is all: its brief is being written")?;
    conversation.reply(said.message, after).await
}

/// A conversation as this process sees it.
struct Conversation<'a> {
    reach: &'a Reach,
    idea: Slug,
    session: SessionId,
    output: &'a Output,
    live: Option<LiveEvents>,
    /// Whether a person types, who likes to see whose turn it is.
    terminal: bool,
    /// Whether words may be shown in bold.
    styled: bool,
    /// The messages of the agent that were shown or are history.
    known: BTreeSet<MessageId>,
    /// How many replies were not waited for, and the position from which they come.
    owed: (u32, i64),
    /// The reply that comes now.
    spoken: PartialReply,
    phase: Phase,
}

impl<'a> Conversation<'a> {
    async fn open(app: &'a App, reach: &'a Reach, slug: &Slug) -> Result<Self, CliError> {
        let output = &app.output;
        let idea = reach
            .store()
            .get::<Idea>(slug.as_str())
            .await?
            .ok_or_else(|| CliError::unknown("idea", slug, "idea list"))?;
        if idea.state == IdeaState::Abandoned {
            return Err(ChatError::Abandoned(slug.clone()).into());
        }
        let styled = is_coloured(&app.environment, std::io::stdout().is_terminal());
        Ok(Self {
            live: reach.live().await,
            terminal: std::io::stdin().is_terminal() && !output.is_json(),
            styled,
            spoken: PartialReply::new(Prose::new(styled, 0)),
            reach,
            idea: slug.clone(),
            session: idea.session,
            output,
            known: BTreeSet::new(),
            owed: (0, 0),
            phase: Phase::Exploring,
        })
    }

    /// Shows where the conversation stands, and waits for the replies that are still owed.
    async fn begin(&mut self) -> Result<(), CliError> {
        let session = self.state().await?;
        self.phase = session.phase;
        let messages = self.messages().await?;
        self.know(&messages);
        let waiting = unanswered(&messages);
        if !waiting.is_empty() {
            return self.catch_up(&waiting).await;
        }
        if let Some(message) = messages.last()
            && !self.output.is_json()
        {
            self.output
                .note(&format!("{SPEAKS}{}", message.text.trim()))?;
        }
        self.output.note(&status(&session))
    }

    /// Waits for the reply to each of the messages that were said before.
    async fn catch_up(&mut self, waiting: &[&Message]) -> Result<(), CliError> {
        let said = positions(self.reach, &self.idea).await?;
        for asked in waiting {
            let position = said.get(&asked.id).copied().unwrap_or(1);
            match self.reply(asked.id, position - 1).await {
                Err(CliError::Cancelled) => return Err(CliError::Cancelled),
                Err(error) => {
                    self.output.note(&error.to_string())?;
                    // It cannot be answered any more, but the next message can; anything else holds for that one too.
                    if error.report().code != UNHANDLED {
                        return Ok(());
                    }
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Says a line and shows the reply.
    async fn say(&mut self, text: &str) -> Result<(), CliError> {
        let after = self.reach.store().last_sequence().await?;
        let (context, user) = (self.reach.context()?, self.reach.person()?.name.clone());
        let said = ideas::say(&context, self.session, &user, text).await?;
        self.reach.wake()?;
        if !self.terminal {
            return self.reply(said.message, after).await;
        }
        let turn = self.reach.turn();
        tokio::select! {
            replied = self.reply(said.message, after) => return replied,
            () = turn.left() => {}
        }
        let (owed, from) = self.owed;
        self.owed = (owed + 1, if owed == 0 { after } else { from });
        self.break_off()?;
        self.output
            .note("\nleft; its reply comes with the next one, and a second Ctrl-C ends the chat")
    }

    /// Shows the words of the reply to `asked` while they come, then what they changed.
    async fn reply(&mut self, asked: MessageId, after: i64) -> Result<(), CliError> {
        let column = if self.terminal { SPEAKS.len() } else { 0 };
        self.spoken = PartialReply::new(Prose::new(self.styled, column));
        let after = if self.owed.0 == 0 { after } else { self.owed.1 };
        let mut vigil = Vigil::over(ROLE, Subject::idea(&self.idea), after)?;
        if self.terminal {
            self.output.prompt(&format!("\n{SPEAKS}"));
        }
        let message = loop {
            match self.new_message().await? {
                Some(message) if self.is_late(&message, asked) => {
                    self.late(&message).await?;
                    continue;
                }
                // It was passed over, and why is told where it failed.
                Some(message) if message.answers.is_some_and(|answers| answers > asked) => {
                    return self.look(&mut vigil).await;
                }
                Some(message) => break message,
                None => {}
            }
            if let Err(error) = self.look(&mut vigil).await {
                self.owed = (0, 0);
                return Err(error);
            }
            self.listen(asked).await?;
        };
        self.known.insert(message.id);
        let session = self.state().await?;
        if self.output.is_json() {
            self.stream(&message, &session)?;
        } else {
            self.finish(&message)?;
        }
        self.tell_phase(&session).await
    }

    /// Says whether a message is no reply to `asked`, but to what was said before it.
    fn is_late(&self, message: &Message, asked: MessageId) -> bool {
        let owed = self.owed.0 > 0;
        message.answers.map_or(owed, |answers| answers < asked)
    }

    /// Shows a reply that was not waited for, then what came meanwhile of the one that is.
    async fn late(&mut self, message: &Message) -> Result<(), CliError> {
        self.owed.0 = self.owed.0.saturating_sub(1);
        self.known.insert(message.id);
        if self.output.is_json() {
            return self.stream(message, &self.state().await?);
        }
        let text = format!("(to what you said before) {}\n", message.text.trim_end());
        self.output.last_words(&text, &mut self.spoken.prose)?;
        if self.owed.0 == 0 {
            let held = std::mem::take(&mut self.spoken.held);
            self.speak(&held)?;
        }
        Ok(())
    }

    fn stream(&self, message: &Message, session: &Session) -> Result<(), CliError> {
        let reply = answered(message, session);
        // What is said is kept, whoever listens.
        self.output.stream(&reply, |_| String::new()).map(drop)
    }

    fn speak(&mut self, words: &str) -> Result<(), CliError> {
        self.output.words(words, &mut self.spoken.prose)?;
        self.spoken.text.push_str(words);
        Ok(())
    }

    /// Shows what is missing of a reply that is whole.
    fn finish(&mut self, message: &Message) -> Result<(), CliError> {
        let spoken = &mut self.spoken;
        if let Some(rest) = unsaid(&spoken.text, &message.text) {
            return self.output.last_words(rest.trim_end(), &mut spoken.prose);
        }
        let text = format!("\n{}", message.text.trim_end());
        self.output
            .last_words(&text, &mut Prose::new(self.styled, 0))
    }

    /// Breaks off what an earlier try said: its words may stand on the screen before its failure stands in the store.
    fn begin_again(&mut self, this_try: Option<&str>) -> Result<(), CliError> {
        if self.spoken.this_try.as_deref() != this_try {
            self.spoken.held.clear();
            self.break_off()?;
            self.spoken.this_try = this_try.map(str::to_owned);
        }
        Ok(())
    }

    /// Ends the line of a reply of which nothing more is shown.
    fn break_off(&mut self) -> Result<(), CliError> {
        self.spoken.held.clear();
        if self.spoken.text.is_empty() {
            // What stands on its line already still does.
            return Ok(());
        }
        let next = PartialReply::new(Prose::new(self.styled, 0));
        let mut before = std::mem::replace(&mut self.spoken, next);
        self.spoken.this_try = before.this_try;
        self.output.last_words("", &mut before.prose)
    }

    /// Hears what is being said in reply to `asked` until it is time to look again.
    async fn listen(&mut self, asked: MessageId) -> Result<(), CliError> {
        let reach = self.reach;
        let pause = reach.pause();
        tokio::pin!(pause);
        loop {
            let Some(live) = &mut self.live else {
                return pause.await;
            };
            let event = tokio::select! {
                waited = &mut pause => return waited,
                Some(event) = live.next() => event,
            };
            // The last words of an earlier reply may come after it was found in the store, which has them all.
            if let Some(delta) = Delta::of(&event)
                && delta.answers == asked
                && !self.output.is_json()
            {
                let words = delta.text;
                self.begin_again(delta.of_try)?;
                if self.owed.0 > 0 {
                    self.spoken.held.push_str(words);
                } else {
                    self.speak(words)?;
                }
            }
        }
    }

    /// Tells what keeps the reply; what was said so far counts no more when it is tried again.
    async fn look(&mut self, vigil: &mut Vigil) -> Result<(), CliError> {
        let tries = vigil.failed_tries();
        let news = vigil
            .look(self.reach, "the message was not answered")
            .await?;
        if vigil.failed_tries() > tries {
            self.break_off()?;
        }
        if is_abandoned(self.reach.store(), &self.idea).await? {
            return Err(ChatError::Abandoned(self.idea.clone()).into());
        }
        news.map_or(Ok(()), |news| self.output.note(&news))
    }

    async fn tell_phase(&mut self, session: &Session) -> Result<(), CliError> {
        self.output.note(&status(session))?;
        let before = std::mem::replace(&mut self.phase, session.phase);
        if before != session.phase && session.phase == Phase::Complete {
            let next = ideas::next_step(self.reach.store(), &self.idea).await?;
            let idea = &self.idea;
            let brief = format!("`ropewalk idea show {idea}` shows its brief");
            self.output
                .note(&format!("the idea is clear: {brief}; {next}"))?;
        }
        Ok(())
    }

    fn know(&mut self, messages: &[Message]) {
        let said = messages
            .iter()
            .filter(|message| message.author == Author::Agent);
        self.known.extend(said.map(|message| message.id));
    }

    async fn new_message(&self) -> Result<Option<Message>, CliError> {
        let messages = self.messages().await?;
        Ok(messages
            .into_iter()
            .find(|message| message.author == Author::Agent && !self.known.contains(&message.id)))
    }

    async fn messages(&self) -> Result<Vec<Message>, CliError> {
        let query = Query::new()
            .equal("session", self.session.to_string())
            .order_by("at");
        let rows = self.reach.store().list::<Message>(query).await?;
        Ok(rows.into_iter().map(|row| row.record).collect())
    }

    async fn state(&self) -> Result<Session, CliError> {
        let session = self
            .reach
            .store()
            .get::<Session>(&self.session.to_string())
            .await?;
        session
            .map(|session| session.record)
            .ok_or_else(|| CliError::unknown("session", self.session, "idea list"))
    }
}

/// Ends the conversation; whoever could not read along hears what became of it.
fn ended(mut unanswered: Vec<CliError>) -> Result<(), CliError> {
    let number = unanswered.len();
    let Some(last) = unanswered.pop() else {
        return Ok(());
    };
    if number == 1 {
        return Err(last);
    }
    let text = (
        format!("{number} messages were not answered"),
        "`ropewalk dead-letter list` shows why, and `ropewalk dead-letter replay ID` tries again",
    );
    Err(CliError::refused(UNHANDLED, text))
}

fn captured(session: &Session) -> Vec<String> {
    session
        .signals
        .artifacts
        .iter()
        .map(|artifact| artifact.kind.clone())
        .collect()
}

fn answered(message: &Message, session: &Session) -> ChatReply {
    ChatReply {
        message: message.id,
        text: message.text.clone(),
        phase: session.phase,
        confidence: session.signals.confidence,
        captured: captured(session),
        waiting_for: session.waiting_for,
    }
}

/// Says in one line what the conversation has come to.
fn status(session: &Session) -> String {
    let mut captured = captured(session);
    let decided = session.signals.decisions.len();
    if decided > 0 {
        captured.push(counted(decided, "decision"));
    }
    let captured = if captured.is_empty() {
        "nothing yet".to_owned()
    } else {
        captured.join(", ")
    };
    let waits = if session.waiting_for.is_some() {
        " | waits for your answer"
    } else {
        ""
    };
    format!(
        "[{} | confidence {:.2} | captured: {captured}{waits}]",
        session.phase, session.signals.confidence
    )
}
