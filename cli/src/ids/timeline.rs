//! Names events and chains of them, which are no rows with a key of their own.

use std::str::FromStr;

use ropewalk_desk::views::event::EventName;
use ropewalk_schemas::{CorrelationId, EventId, InvalidId};
use ropewalk_store::EventKey;
use uuid::Uuid;

use super::{IdText, fits_several};
use crate::error::CliError;
use crate::wiring::OpenProject;

/// The verb that shows the ids of events; without the flag it shows their positions.
const IDS: &str = "event list --json";

/// Says that a text names no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a position, as `ropewalk event list` shows it, or the end of an id")]
pub struct NoEventText;

/// An event: its position in commit order, its id, or at least six of the digits that its id begins or ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventText {
    id: IdText,
    position: Option<i64>,
}

impl FromStr for EventText {
    type Err = NoEventText;

    fn from_str(text: &str) -> Result<Self, NoEventText> {
        let id = IdText::new(text);
        let is_number = id.text.bytes().all(|byte| byte.is_ascii_digit());
        let number: Option<i64> = id.text.parse().ok();
        let position = number.filter(|position| *position > 0);
        // A number that no event has reached may be digits of an id; one that is larger than any has too many for that.
        let is_name = position.is_some() || id.is_digits();
        if !is_name || (is_number && number.is_none()) {
            return Err(NoEventText);
        }
        Ok(Self { id, position })
    }
}

impl EventText {
    /// Finds the event that is meant; nobody has looked yet whether it is there.
    pub async fn find(&self, opened: &OpenProject) -> Result<EventName, CliError> {
        if let Some(position) = self.position
            && position <= opened.store.last_sequence().await?
        {
            return Ok(EventName::Position(position));
        }
        match (
            self.id.in_timeline(EventKey::Id, opened).await?,
            self.position,
        ) {
            (Some(id), _) => Ok(EventName::Id(EventId(id))),
            (None, Some(position)) => Ok(EventName::Position(position)),
            (None, None) => Err(self.unknown()),
        }
    }

    /// Finds the position of the event that is meant.
    pub async fn position(&self, opened: &OpenProject) -> Result<i64, CliError> {
        match self.find(opened).await? {
            EventName::Position(position) => Ok(position),
            EventName::Id(id) => {
                let found = opened.store.event(id).await?;
                found
                    .map(|event| event.sequence)
                    .ok_or_else(|| self.unknown())
            }
        }
    }

    /// Says that no event is called so.
    pub fn unknown(&self) -> CliError {
        CliError::unknown("event", &self.id, "event list")
    }
}

/// A chain of events: its id, or at least six of the digits that it begins or ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainText(IdText);

impl FromStr for ChainText {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let id = IdText::new(text);
        match text.parse::<CorrelationId>() {
            Err(invalid) if !id.is_digits() => Err(invalid),
            _ => Ok(Self(id)),
        }
    }
}

impl ChainText {
    /// Finds the chain that is meant.
    pub async fn find(&self, opened: &OpenProject) -> Result<CorrelationId, CliError> {
        let found = self.0.in_timeline(EventKey::Correlation, opened).await?;
        let unknown = || CliError::unknown("chain of events", &self.0, IDS);
        found.map(CorrelationId).ok_or_else(unknown)
    }
}

impl IdText {
    /// Returns whether this is an id or can be part of one.
    fn is_digits(&self) -> bool {
        self.whole.is_some() || self.is_part()
    }

    /// Finds the id that is meant among those of the timeline, if any; a whole one is taken as it is.
    async fn in_timeline(
        &self,
        key: EventKey,
        opened: &OpenProject,
    ) -> Result<Option<Uuid>, CliError> {
        if self.whole.is_some() || !self.is_part() {
            return Ok(self.whole);
        }
        let found = opened.store.event_keys(key, &self.text).await?;
        match found.as_slice() {
            [] => Ok(None),
            [id] => Ok(Some(Uuid::parse_str(id).map_err(CliError::failed)?)),
            several => Err(fits_several(self, several, IDS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_position_an_id_or_digits_of_one() {
        let whole = "0197a3c0-1111-7abc-8def-0123456789ab";
        for (text, position) in [
            ("120", Some(120)),
            ("45678912", Some(45_678_912)),
            ("456789ab", None),
            ("000000", None),
            (whole, None),
        ] {
            let event = text.parse::<EventText>().unwrap();
            assert_eq!(event.position, position, "{text}");
        }
        for bad in ["", "0", "-3", "first", "89ab", "99999999999999999999"] {
            assert_eq!(bad.parse::<EventText>(), Err(NoEventText), "{bad}");
        }
    }

    #[test]
    fn a_chain_is_an_id_or_digits_of_one() {
        let whole = "0197a3c0-1111-7abc-8def-0123456789ab";
        for good in [whole, "456789ab", "0197A3"] {
            assert!(good.parse::<ChainText>().is_ok(), "{good}");
        }
        for bad in ["", "89ab", "walks"] {
            assert!(bad.parse::<ChainText>().is_err(), "{bad}");
        }
    }
}
