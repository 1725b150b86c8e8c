//! Defines what people are told unasked, and when not.

use serde::{Deserialize, Serialize};
use url::Url;

/// The minutes of a day.
const DAY: u32 = 24 * 60;

/// What people are told unasked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoticeSettings {
    /// After which a question that nobody answered goes to everybody.
    pub escalate_minutes: u32,
    /// How long what holds nothing up is gathered.
    pub batch_minutes: u32,
    /// When only what holds work up is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietHours>,
    /// When each day people hear what happened since they heard it last; without it they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<TimeOfDay>,
    /// Whether `up` rings the bell of its terminal.
    pub terminal: bool,
    /// What gets each notice by POST.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<Url>,
    /// The environment variable with the secret that signs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_secret_variable: Option<String>,
}

/// Hours of each day, UTC; they may go over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QuietHours {
    /// The minute of the day that they begin with.
    from: u32,
    /// The minute of the day that they end before.
    to: u32,
}

/// A minute of each day, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeOfDay {
    minute: u32,
}

/// Says that a text names no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no time; write `07:00`, which is UTC")]
pub struct InvalidTimeOfDay(String);

impl TimeOfDay {
    /// Returns the hour, 0 to 23.
    pub const fn hour(self) -> u32 {
        self.minute / 60
    }

    /// Returns the minute of the hour, 0 to 59.
    pub const fn minute(self) -> u32 {
        self.minute % 60
    }
}

impl TryFrom<String> for TimeOfDay {
    type Error = InvalidTimeOfDay;

    fn try_from(text: String) -> Result<Self, InvalidTimeOfDay> {
        match minute(&text) {
            Some(minute) => Ok(Self { minute }),
            None => Err(InvalidTimeOfDay(text)),
        }
    }
}

impl From<TimeOfDay> for String {
    fn from(time: TimeOfDay) -> Self {
        written(time.minute)
    }
}

/// Says that a text names no hours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no hours; write `22:00-07:00`, which is UTC")]
pub struct InvalidQuietHours(String);

impl QuietHours {
    /// Returns after how many minutes the hours are over, if `minute` of a day lies in them.
    pub const fn over_after(self, minute: u32) -> Option<u32> {
        let since = (minute + DAY - self.from) % DAY;
        let length = (self.to + DAY - self.from) % DAY;
        if since < length {
            Some(length - since)
        } else {
            None
        }
    }
}

impl TryFrom<String> for QuietHours {
    type Error = InvalidQuietHours;

    fn try_from(text: String) -> Result<Self, InvalidQuietHours> {
        let parsed = text.split_once('-').and_then(|(from, to)| {
            Some(Self {
                from: minute(from)?,
                to: minute(to)?,
            })
        });
        match parsed {
            Some(hours) if hours.from != hours.to => Ok(hours),
            _ => Err(InvalidQuietHours(text)),
        }
    }
}

impl From<QuietHours> for String {
    fn from(hours: QuietHours) -> Self {
        format!("{}-{}", written(hours.from), written(hours.to))
    }
}

fn written(minute: u32) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

fn minute(text: &str) -> Option<u32> {
    let (hour, minute) = text.trim().split_once(':')?;
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_go_over_midnight_and_end_where_they_say() {
        let hours = |text: &str| QuietHours::try_from(text.to_owned());
        let night = hours("22:00-07:30").unwrap();
        for (minute, expected) in [
            (21 * 60 + 59, None),
            (22 * 60, Some(9 * 60 + 30)),
            (23 * 60 + 59, Some(7 * 60 + 31)),
            (0, Some(7 * 60 + 30)),
            (7 * 60 + 29, Some(1)),
            (7 * 60 + 30, None),
        ] {
            assert_eq!(night.over_after(minute), expected, "{minute}");
        }
        assert_eq!(String::from(night), "22:00-07:30");
        for wrong in ["", "22-7", "22:00", "24:00-07:00", "07:00-07:00", "a:b-c:d"] {
            assert!(hours(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_of_day_is_read_and_written_as_hours_and_minutes() {
        let time = |text: &str| TimeOfDay::try_from(text.to_owned());
        let early = time("7:05").unwrap();
        assert_eq!((early.hour(), early.minute()), (7, 5));
        assert_eq!(String::from(early), "07:05");
        for wrong in ["", "7", "24:00", "07:60", "-1:00", "seven:00"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
