//! A scripted model that notes what it is told, and that a test can hold at each call.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ropewalk_engine::llm::{Model, ModelError, ModelRequest, ReplyStream, ScriptKey};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::world::project::PATIENCE;

/// What comes before the model answers.
#[async_trait]
pub(crate) trait Pace: Send + Sync {
    /// Waits, or fails in the model's place.
    async fn before(&self, key: &ScriptKey) -> Result<(), ModelError>;
}

/// Asks a model that plays a script, and notes what it was told.
pub(crate) struct Listener {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) pace: Option<Arc<dyn Pace>>,
    pub(crate) told: Arc<Mutex<Vec<ModelRequest>>>,
}

#[async_trait]
impl Model for Listener {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        self.told.lock().unwrap().push(request.clone());
        if let Some(pace) = &self.pace {
            let key = request.script.clone().unwrap_or_default();
            pace.before(&key).await?;
        }
        self.model.stream(request, cancel).await
    }
}

/// Holds each call of the model until the test has looked around.
#[derive(Clone)]
pub(crate) struct Hold {
    arrived: Arc<Semaphore>,
    released: Arc<Semaphore>,
}

impl Hold {
    pub(crate) fn new() -> Self {
        Self {
            arrived: Arc::new(Semaphore::new(0)),
            released: Arc::new(Semaphore::new(0)),
        }
    }

    /// Waits until the model is called.
    pub(crate) async fn called(&self) {
        let arrived = tokio::time::timeout(PATIENCE, self.arrived.acquire()).await;
        arrived.expect("no call in time").unwrap().forget();
    }

    /// Lets the call that is held go on.
    pub(crate) fn let_go(&self) {
        self.released.add_permits(1);
    }
}

#[async_trait]
impl Pace for Hold {
    async fn before(&self, _key: &ScriptKey) -> Result<(), ModelError> {
        self.arrived.add_permits(1);
        self.released.acquire().await.unwrap().forget();
        Ok(())
    }
}

/// Fails some of the calls of build agents, which are counted from 1.
pub(crate) struct Fault {
    of: fn(u32) -> Option<ModelError>,
    calls: AtomicU32,
}

impl Fault {
    /// Fails those for which there is an error.
    pub(crate) fn of(of: fn(u32) -> Option<ModelError>) -> Arc<Self> {
        Arc::new(Self {
            of,
            calls: AtomicU32::new(0),
        })
    }
}

#[async_trait]
impl Pace for Fault {
    async fn before(&self, key: &ScriptKey) -> Result<(), ModelError> {
        if key.agent != "build" {
            return Ok(());
        }
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        (self.of)(call).map_or(Ok(()), Err)
    }
}
