//! Reads which events a request wants, as its query names them.

use ropewalk_schemas::{ComponentName, CorrelationId, EventPattern, Subject, clip};
use ropewalk_store::EventFilter;

use crate::problem::{Problem, unreadable};

/// Which events are wanted: all of them, where nothing is said.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WantedEvents<'a> {
    /// Those of this type, or of a family.
    pub(crate) event_type: Option<&'a str>,
    /// Those of this component.
    pub(crate) source: Option<&'a str>,
    /// Those about this entity.
    pub(crate) subject: Option<&'a str>,
    /// Those that one request set in motion.
    pub(crate) correlation: Option<&'a str>,
}

impl WantedEvents<'_> {
    /// Returns the filter for this.
    pub(crate) fn filter(&self) -> Result<EventFilter, Problem> {
        let pattern = self.event_type.map(|text| {
            EventPattern::known(text).ok_or_else(|| {
                let next = match EventPattern::near(text) {
                    Some(near) => format!("`{near}` may be meant"),
                    None => "write for example `task.failed` or `alert.*`".to_owned(),
                };
                let text = clip::line(text, 80);
                Problem::usage((format!("no event type is called `{text}`"), next))
            })
        });
        let source = self
            .source
            .map(|text| ComponentName::parse(text).map_err(unreadable("source")));
        let subject = self
            .subject
            .map(|text| Subject::parse(text).map_err(unreadable("subject")));
        let correlation = self.correlation.map(|text| {
            let read = text.parse::<CorrelationId>();
            read.map_err(unreadable("correlation"))
        });
        Ok(EventFilter {
            pattern: pattern.transpose()?,
            source: source.transpose()?,
            subject: subject.transpose()?,
            correlation: correlation.transpose()?,
            ..EventFilter::default()
        })
    }
}
