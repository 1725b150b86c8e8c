//! A world with notices and a bot at the emulator.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use ropewalk_config::settings::PersonRecord;
use ropewalk_desk::builds::landing::LandingView;
use ropewalk_desk::people::People;
use ropewalk_orchestrator::notices::{Listener, Notifier, Parts as NotifierParts, Rules, Turn};
use ropewalk_orchestrator::questions::{
    self, AskOutcome, Deadlines, QuestionRequest, QuestionService,
};
use ropewalk_orchestrator::{Agent, Context, Frame, Services};
use ropewalk_runtime::Clock;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::person::{Right, Role};
use ropewalk_schemas::question::{About, Choice, ChoiceWords, Question, QuestionKind};
use ropewalk_schemas::{ChoiceId, CommitId, QuestionId, RepoPath, UserSlug};
use ropewalk_store::{ChangeSet, Query};
use ropewalk_telegram::{Bot, LeftUpdates, Parts, TelegramClient, TelegramPort, UpdateHook};
use ropewalk_tests::servers::TelegramServer;
use ropewalk_world::{Plan, World};

use crate::phones::TOKEN;

/// The chats of two people: ada may everything, bob nothing beside what everybody may. Cleo has no phone yet.
pub(crate) const ADA: i64 = 1;
pub(crate) const BOB: i64 = 2;
/// A chat of several.
pub(crate) const GROUP: i64 = -1009;

pub(crate) fn people() -> anyhow::Result<People> {
    named(ADA)
}

/// The same where ada is told in this chat.
fn named(chat_of_ada: i64) -> anyhow::Result<People> {
    let record = |chat: Option<i64>, rights: &[Right]| PersonRecord {
        telegram_user: chat,
        telegram_chats: chat.into_iter().collect(),
        rights: rights.iter().copied().collect(),
        ..PersonRecord::default()
    };
    let ada = PersonRecord {
        telegram_chats: vec![chat_of_ada],
        ..record(Some(ADA), &Right::ALL)
    };
    let known: BTreeMap<UserSlug, PersonRecord> = [
        (UserSlug::parse("ada")?, ada),
        (UserSlug::parse("bob")?, record(Some(BOB), &[])),
        (UserSlug::parse("cleo")?, record(None, &[])),
    ]
    .into();
    Ok(People::new(known, UserSlug::parse("ada")?))
}

/// Everything is told at once, to everybody `escalate` after those of a role.
const fn at_once(escalate: Duration) -> Rules {
    Rules {
        escalate,
        batch: Duration::ZERO,
        quiet: None,
        summary: None,
    }
}

/// A running bot with notices.
pub(crate) struct BotWorld {
    pub(crate) services: Services,
    world: World,
    parts: Parts,
    /// Where the branch stands that everything lands in; where a build does as long as nobody moves it on.
    main: Arc<Mutex<Option<CommitId>>>,
    /// How long it takes to find out what landing a build comes to.
    looking: Arc<Mutex<Duration>>,
}

impl BotWorld {
    /// Opens the store in `directory` and serves a bot at the emulator.
    pub(crate) async fn open(directory: &Path, telegram: &TelegramServer) -> anyhow::Result<Self> {
        Self::open_at(directory, telegram, &Clock::system()).await
    }

    /// Does the same at the time of `clock`, which moves as the test says.
    pub(crate) async fn open_at(
        directory: &Path,
        telegram: &TelegramServer,
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        let escalate = Duration::from_hours(1);
        Self::open_for(directory, telegram, clock, escalate, &BTreeMap::new()).await
    }

    /// Does the same where people have roles, and everybody is asked `escalate` after those of a role.
    pub(crate) async fn open_for(
        directory: &Path,
        telegram: &TelegramServer,
        clock: &Clock,
        escalate: Duration,
        roles: &BTreeMap<&str, Role>,
    ) -> anyhow::Result<Self> {
        let client = TelegramClient::new(TOKEN, &telegram.url(), clock.clone())?;
        let known = (client, people()?);
        Self::open_with(directory, clock, known, at_once(escalate), roles).await
    }

    /// Does the same where what holds nothing up is gathered for so long.
    pub(crate) async fn open_gathering(
        directory: &Path,
        telegram: &TelegramServer,
        clock: &Clock,
        batch: Duration,
    ) -> anyhow::Result<Self> {
        let client = TelegramClient::new(TOKEN, &telegram.url(), clock.clone())?;
        let rules = Rules {
            batch,
            ..at_once(Duration::from_hours(1))
        };
        let known = (client, people()?);
        Self::open_with(directory, clock, known, rules, &BTreeMap::new()).await
    }

    /// Does the same where ada is told in a group, in a topic of it.
    pub(crate) async fn open_in_topic(
        directory: &Path,
        telegram: &TelegramServer,
        topic: i32,
    ) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let client = TelegramClient::new(TOKEN, &telegram.url(), clock.clone())?;
        let known = (client.in_topic(Some(topic)), named(GROUP)?);
        let rules = at_once(Duration::from_hours(1));
        Self::open_with(directory, &clock, known, rules, &BTreeMap::new()).await
    }

    async fn open_with(
        directory: &Path,
        clock: &Clock,
        (client, people): (TelegramClient, People),
        telling: Rules,
        roles: &BTreeMap<&str, Role>,
    ) -> anyhow::Result<Self> {
        let world = Plan::unlike_any_other(clock).open(directory).await?;
        let services = world.services.clone();
        let notifier = Notifier::new(NotifierParts {
            port: Arc::new(TelegramPort::new(client.clone(), people.clone())),
            people: listeners(&people, roles),
            rules: telling,
            turn: Arc::new(|| Some(Box::new(()))),
        })?;
        let questions = QuestionService::new(Deadlines::default())?;
        let main = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&main);
        let looking: Arc<Mutex<Duration>> = Arc::default();
        let taking = Arc::clone(&looking);
        let parts = Parts {
            client,
            people,
            rules: telling,
            services: services.clone(),
            builds_with: vec!["scripted".to_owned()],
            silent_after: Duration::from_secs(90),
            chats_with: vec!["scripted".to_owned()],
            landings: Arc::new(move |build| {
                let onto = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let time = *taking.lock().unwrap_or_else(PoisonError::into_inner);
                Box::pin(async move {
                    tokio::time::sleep(time).await;
                    landing(&build, onto)
                })
            }),
            state: directory.to_owned(),
        };
        let agents: Vec<Arc<dyn Agent>> = vec![
            Arc::new(notifier),
            Arc::new(questions),
            Arc::new(LeftUpdates::new(parts.clone())?),
        ];
        Frame::start(&services, agents, &world.supervisor).await?;
        let turn: Turn = Arc::new(|| Some(Box::new(())));
        Bot::new(parts.clone(), turn, None)?.serve(&world.supervisor);
        Ok(Self {
            services,
            world,
            parts,
            main,
            looking,
        })
    }

    /// Takes what Telegram brings, too.
    pub(crate) fn hook(&self) -> anyhow::Result<UpdateHook> {
        Ok(UpdateHook::serve(
            self.parts.clone(),
            &self.world.supervisor,
        )?)
    }

    /// Moves the branch on that everything lands in.
    pub(crate) fn move_main(&self, to: CommitId) {
        *self.main.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
    }

    /// Lets it take so long to find out what landing a build comes to.
    pub(crate) fn look_for(&self, time: Duration) {
        *self.looking.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    pub(crate) fn context(&self) -> anyhow::Result<Context> {
        Ok(self.world.context("build")?)
    }

    /// Asks what holds work up: yes, no, or words.
    pub(crate) async fn ask(&self, trigger: &str, text: &str) -> anyhow::Result<QuestionId> {
        self.put(ChangeSet::new(), asking(trigger, text)?).await
    }

    /// Asks what has consequences.
    pub(crate) async fn ask_what_binds(
        &self,
        trigger: &str,
        text: &str,
    ) -> anyhow::Result<QuestionId> {
        let asking = QuestionRequest {
            consequential: true,
            ..asking(trigger, text)?
        };
        self.put(ChangeSet::new(), asking).await
    }

    /// Asks with what changes beside it.
    pub(crate) async fn put(
        &self,
        changes: ChangeSet,
        asking: QuestionRequest,
    ) -> anyhow::Result<QuestionId> {
        self.put_within(Deadlines::default(), changes, asking).await
    }

    /// Does the same where questions end otherwise.
    pub(crate) async fn put_within(
        &self,
        deadlines: Deadlines,
        mut changes: ChangeSet,
        asking: QuestionRequest,
    ) -> anyhow::Result<QuestionId> {
        let context = self.context()?;
        let asked = questions::ask(&mut changes, &context, &deadlines, asking);
        let AskOutcome::Open(id) = asked.await? else {
            anyhow::bail!("it was answered before")
        };
        self.services.store.commit(changes).await?;
        Ok(id)
    }

    pub(crate) async fn question(&self, id: QuestionId) -> anyhow::Result<Question> {
        let found = self.services.store.get::<Question>(&id.to_string()).await?;
        Ok(found.context("no question")?.into_inner())
    }

    /// Lists what was told of a question.
    pub(crate) async fn told(&self, id: QuestionId) -> anyhow::Result<Vec<Notice>> {
        let of_it = Query::new().equal("question", id);
        let told = self.services.store.list::<Notice>(of_it).await?;
        Ok(told.into_iter().map(|notice| notice.record).collect())
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        Ok(self.world.close().await?)
    }
}

/// What landing a build would come to, without any repository: the documents of its idea come along.
fn landing(build: &Build, onto: Option<CommitId>) -> Result<LandingView, String> {
    let folder = RepoPath::parse(&format!("ideas/{}", build.idea));
    Ok(LandingView {
        build: build.id,
        into: build.target.clone(),
        from: build.head.clone(),
        onto: onto.or_else(|| build.head.clone()),
        comes_to: Some("would move on to it".to_owned()),
        gate: true,
        documents: Some(folder.map_err(|error| error.to_string())?),
        refusal: None,
        conflicts: None,
        objections: Vec::new(),
    })
}

/// What holds work up: yes, no, or words.
pub(crate) fn asking(trigger: &str, text: &str) -> anyhow::Result<QuestionRequest> {
    let choice = |id: &str, label: &str| -> anyhow::Result<Choice> {
        let words = match id {
            "other" => ChoiceWords::Required,
            _ => ChoiceWords::None,
        };
        Ok(Choice {
            words,
            recommended: id == "leave",
            ..Choice::new(ChoiceId::parse(id)?, label)
        })
    };
    Ok(QuestionRequest {
        kind: QuestionKind::Blocking,
        trigger: trigger.to_owned(),
        text: text.to_owned(),
        context: "A test.".to_owned(),
        choices: vec![
            choice("merge", "Merge it")?,
            choice("leave", "Leave it")?,
            choice("other", "Something else...")?,
        ],
        free_text: true,
        default: None,
        consequential: false,
        content: None,
        about: About::Nothing,
        topic: None,
        idea: None,
    })
}

/// Returns everybody as those who are told, with the roles that some of them have.
fn listeners(people: &People, roles: &BTreeMap<&str, Role>) -> Vec<Listener> {
    let everybody = people.all().into_iter().map(|person| Listener {
        roles: roles
            .get(person.name.as_str())
            .copied()
            .into_iter()
            .collect(),
        name: person.name,
        rights: person.rights,
        summary: true,
    });
    everybody.collect()
}
