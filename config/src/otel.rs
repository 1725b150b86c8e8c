//! Reads the variables by which programs are told where their spans go (OpenTelemetry).
//!
//! They stand below the variables of this program and above its files. A receiver that takes no OTLP over HTTP is not one for
//! us: where they ask for another protocol, they say nothing.

use crate::environment::Environment;

/// Where spans of every program go, below which each kind has its path.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Where spans alone go, with the path.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// The path of spans.
const PATH: &str = "/v1/traces";

/// What the variables of OpenTelemetry say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtelVariables {
    /// Whether no spans are wanted, whatever else says where they go.
    pub is_off: bool,
    /// What is sent with each request to a receiver that they name.
    pub headers: Vec<(String, String)>,
    /// What they say of this process, beside what it says of itself.
    pub resource: Vec<(String, String)>,
}

impl OtelVariables {
    /// Reads them.
    pub fn of(environment: &Environment) -> Self {
        let is = |name: &str, value: &str| {
            environment
                .get(name)
                .is_some_and(|text| text.eq_ignore_ascii_case(value))
        };
        let mut resource = pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES"));
        if let Some(name) = environment.get("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".to_owned(), name.to_owned()));
        }
        let own = environment.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS");
        let headers = own.or_else(|| environment.get("OTEL_EXPORTER_OTLP_HEADERS"));
        Self {
            is_off: is("OTEL_SDK_DISABLED", "true")
                || is("OTEL_TRACES_EXPORTER", "none")
                || is("OTEL_TRACES_SAMPLER", "always_off"),
            headers: pairs(headers),
            resource,
        }
    }

    /// Returns whether the value of a variable is one that names a receiver.
    pub fn names_receiver(variable: &str) -> bool {
        matches!(variable, ENDPOINT | TRACES_ENDPOINT)
    }
}

/// Returns the keys that they set, each with the variable that it is from and its value.
pub(crate) fn settings(environment: &Environment) -> Vec<(&'static str, &'static str, String)> {
    let mut settings = Vec::new();
    let own = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL");
    let protocol = own.or_else(|| environment.get("OTEL_EXPORTER_OTLP_PROTOCOL"));
    let receiver = [TRACES_ENDPOINT, ENDPOINT]
        .into_iter()
        .find_map(|name| Some((name, environment.get(name)?)));
    if let Some((name, url)) = receiver
        && protocol.is_none_or(|protocol| protocol.starts_with("http/"))
    {
        let base = match name {
            TRACES_ENDPOINT => url.strip_suffix(PATH).unwrap_or(url),
            _ => url,
        };
        settings.push(("telemetry.endpoint", name, base.to_owned()));
    }
    let sampler = environment.get("OTEL_TRACES_SAMPLER");
    if sampler.is_some_and(|sampler| sampler.ends_with("traceidratio"))
        && let Some(ratio) = environment.get("OTEL_TRACES_SAMPLER_ARG")
    {
        let percent = match ratio.parse::<f64>() {
            // The least that can be said is one in a hundred.
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => {
                (ratio * 100.0).round().max(1.0).to_string()
            }
            _ => ratio.to_owned(),
        };
        settings.push((
            "telemetry.sample_percent",
            "OTEL_TRACES_SAMPLER_ARG",
            percent,
        ));
    }
    settings
}

/// Reads `key=value,key=value`, where values are percent-encoded; what is no pair is left out.
fn pairs(text: Option<&str>) -> Vec<(String, String)> {
    let parts = text.unwrap_or_default().split(',');
    parts
        .filter_map(|part| {
            let (key, value) = part.split_once('=')?;
            let key = key.trim();
            (!key.is_empty()).then(|| (key.to_owned(), decoded(value.trim())))
        })
        .collect()
}

fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = byte.filter(|_| *first == b'%') {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(variables: &[(&str, &str)]) -> Vec<(&'static str, &'static str, String)> {
        settings(&Environment::from_pairs(variables.iter().copied()))
    }

    #[test]
    fn a_receiver_of_spans_alone_counts_before_that_of_all_and_only_over_http() {
        let all = (ENDPOINT, "http://a:4318");
        let endpoint = |variables: &[(&str, &str)]| {
            let found = set(variables).into_iter().next();
            found.map(|(_, variable, url)| (variable, url))
        };
        assert_eq!(
            endpoint(&[all]),
            Some((ENDPOINT, "http://a:4318".to_owned()))
        );
        let own = (TRACES_ENDPOINT, "http://b/otlp/v1/traces");
        let expected = (TRACES_ENDPOINT, "http://b/otlp".to_owned());
        assert_eq!(endpoint(&[all, own]), Some(expected));
        for (protocol, is_ours) in [
            ("http/protobuf", true),
            ("http/json", true),
            ("grpc", false),
        ] {
            let found = endpoint(&[all, ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]);
            assert_eq!(found.is_some(), is_ours, "{protocol}");
        }
        assert_eq!(endpoint(&[]), None);
    }

    #[test]
    fn a_part_of_all_traces_is_so_many_in_a_hundred() {
        let sampler = ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
        for (ratio, expected) in [("0.25", "25"), ("1", "100"), ("0", "1"), ("much", "much")] {
            let found = set(&[sampler, ("OTEL_TRACES_SAMPLER_ARG", ratio)]);
            assert_eq!(found[0].2, expected, "{ratio}");
        }
        assert!(set(&[("OTEL_TRACES_SAMPLER_ARG", "0.5")]).is_empty());
    }

    #[test]
    fn pairs_are_read_and_what_is_off_is_off() {
        let environment = Environment::from_pairs([
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20a%2Cb, x = 1%,nothing",
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=other,deployment.environment=lab",
            ),
            ("OTEL_SERVICE_NAME", "habits"),
        ]);
        let read = OtelVariables::of(&environment);
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        assert_eq!(
            read.headers,
            owned(&[("authorization", "Bearer a,b"), ("x", "1%")])
        );
        let resource = [
            ("deployment.environment", "lab"),
            ("service.name", "habits"),
        ];
        assert_eq!(read.resource, owned(&resource));
        assert!(!read.is_off);
        for off in [
            ("OTEL_SDK_DISABLED", "TRUE"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_TRACES_SAMPLER", "always_off"),
        ] {
            assert!(
                OtelVariables::of(&Environment::from_pairs([off])).is_off,
                "{off:?}"
            );
        }
    }
}
