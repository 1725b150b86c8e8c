//! Reads how long a provider asks to wait.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Reads `retry-after-ms`, else `retry-after` in seconds or as a date; junk is no answer.
pub(super) fn read(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim().to_owned());
    let milliseconds = text("retry-after-ms")
        .and_then(|value| value.parse::<f64>().ok())
        .and_then(|value| Duration::try_from_secs_f64(value / 1000.0).ok());
    milliseconds.or_else(|| {
        let value = text(RETRY_AFTER.as_str())?;
        match value.parse::<f64>() {
            Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            Err(_) => DateTime::parse_from_rfc2822(&value)
                .ok()
                .map(|at| (at.to_utc() - now).to_std().unwrap_or_default()),
        }
    })
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn every_spelling_is_read_and_junk_is_not() {
        let now = DateTime::parse_from_rfc3339("2026-01-01T00:00:00Z")
            .unwrap()
            .to_utc();
        let cases = [
            ("retry-after", "3", Some(3_000)),
            ("retry-after", "0", Some(0)),
            ("retry-after", " 1.5 ", Some(1_500)),
            ("retry-after", "Thu, 01 Jan 2026 00:01:00 GMT", Some(60_000)),
            ("retry-after", "Wed, 31 Dec 2025 00:00:00 GMT", Some(0)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("retry-after", "1e99", None),
            ("retry-after", "nan", None),
            ("x-other", "3", None),
        ];
        for (name, value, milliseconds) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
            assert_eq!(
                read(&headers, now),
                milliseconds.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
    }
}
