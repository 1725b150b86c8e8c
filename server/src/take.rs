//! Takes what a request says: its JSON, its parameters, its ids. What cannot be understood is one line that says why.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use ropewalk_desk::people::Person;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::Problem;

/// The letter that no text of the store holds, as JSON writes it.
const ZERO: &[u8] = b"\\u0000";

/// How a body is mended.
const FORM: &str = "send one JSON object of the form that `GET /api/openapi.json` describes";
/// How the parameters of an address are mended.
const PARAMETERS: &str = "send those parameters that `GET /api/openapi.json` describes";

/// The body of a request that takes no words: there is none, or one without any field.
pub(crate) struct Wordless;

/// What a request says that takes no words.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFields {}

impl<S: Send + Sync> FromRequest<S> for Wordless {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|error| Problem::usage((error.body_text(), "send no body")))?;
        if !bytes.trim_ascii().is_empty() {
            parse::<NoFields>(&bytes)?;
        }
        Ok(Self)
    }
}

/// The body of a request.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let text = (
                "the body must be JSON",
                "send `Content-Type: application/json`",
            );
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Problem::new(status, "usage", text));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|error| {
            Problem::usage((error.body_text(), "send the body once more, whole"))
        })?;
        parse(&bytes).map(Self)
    }
}

/// Reads JSON; the field that is wrong is named.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.trim_ascii().is_empty() {
        let text = ("the body is empty", "send a JSON object, if only `{}`");
        return Err(Problem::usage(text));
    }
    // A list would be read as the fields of an object, in the order in which they are written here.
    if bytes.trim_ascii().starts_with(b"[") {
        let text = ("the body is a list, and no object", "send a JSON object");
        return Err(Problem::usage(text));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        // Where it breaks off within something, that is named by a `?`.
        let path = error.path().to_string();
        let place = match path.trim_end_matches(['?', '.']) {
            "" => "the body".to_owned(),
            path => format!("`{path}`"),
        };
        let error = error.into_inner();
        Problem::usage((format!("{place} cannot be understood: {error}"), FORM))
    })?;
    deserializer.end().map_err(|error| {
        Problem::usage((format!("the body cannot be understood: {error}"), FORM))
    })?;
    match with_zero(bytes) {
        Some(field) => Err(not_text(&field)),
        None => Ok(parsed),
    }
}

/// Returns the field of a body whose text holds U+0000, if any. The store would replace the letter, and another text
/// than was sent would be kept.
fn with_zero(bytes: &[u8]) -> Option<String> {
    // Hardly any body names the letter, and it is not read twice then.
    if !bytes.windows(ZERO.len()).any(|part| part == ZERO) {
        return None;
    }
    let body = serde_json::from_slice(bytes).ok()?;
    place_of_zero(&body, String::new())
}

fn place_of_zero(value: &Value, place: String) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then_some(place),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(number, item)| place_of_zero(item, format!("{place}[{number}]"))),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let within = match place.as_str() {
                "" => name.clone(),
                place => format!("{place}.{name}"),
            };
            place_of_zero(value, within)
        }),
        _ => None,
    }
}

/// Refuses pairs of an address or a form of which one holds U+0000.
pub(crate) fn refuse_zero<'a>(
    mut pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<(), Problem> {
    let found = pairs.find(|(_, text)| text.contains('\0'));
    found.map_or(Ok(()), |(name, _)| Err(not_text(name)))
}

fn not_text(field: &str) -> Problem {
    let message = format!("`{field}` holds the letter U+0000, which is no text");
    Problem::usage((message, "leave that letter out"))
}

/// What stands in the path of a request; what is no text there is the id of nothing.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::from_request_parts(parts, state).await;
        let read = read.map(|axum::extract::Path(named)| Self(named));
        read.map_err(|_| {
            let text = (
                "nothing is called so, since it is no text",
                "write it in UTF-8, or look where it is listed",
            );
            Problem::new(StatusCode::NOT_FOUND, "unknown-id", text)
        })
    }
}

/// The parameters of a request.
pub(crate) struct Parameters<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Query(parameters) =
            Query::try_from_uri(&parts.uri).map_err(|error| misread(&error.body_text()))?;
        let query = parts.uri.query().unwrap_or_default();
        let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
        refuse_zero(pairs.iter().map(|(name, text)| (&**name, &**text)))?;
        Ok(Self(parameters))
    }
}

/// Says in one line which parameter cannot be understood, of what the reader says.
fn misread(told: &str) -> Problem {
    const NUMBER: [&str; 3] = ["invalid digit", "number too ", "cannot parse integer"];
    let told = told
        .split_once("query string: ")
        .map_or(told, |(_, told)| told);
    match told.split_once(": ") {
        Some((name, why)) if NUMBER.iter().any(|number| why.starts_with(number)) => {
            let message = format!("`{name}` is not a number that it can be");
            Problem::usage((message, "write a whole number, or leave it out"))
        }
        Some((name, why)) if !name.contains(' ') => {
            Problem::usage((format!("`{name}` cannot be understood: {why}"), PARAMETERS))
        }
        _ => Problem::usage((
            format!("the address cannot be understood: {told}"),
            PARAMETERS,
        )),
    }
}

/// Who asks.
pub(crate) struct Asker(pub(crate) Person);

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let person = parts.extensions.get::<Person>().cloned();
        let text = (
            "nobody is logged in",
            "open the link that `ropewalk up` shows",
        );
        person
            .map(Self)
            .ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "credentials", text))
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Words {
        text: String,
        count: Option<f64>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        #[expect(dead_code, reason = "only what is refused is looked at")]
        page: Option<u32>,
    }

    #[test]
    fn a_parameter_that_is_no_number_is_named_in_one_line() {
        for (query, told) in [
            ("page=abc", "`page` is not a number that it can be"),
            ("page=-1", "`page` is not a number that it can be"),
            ("page=99999999999", "`page` is not a number that it can be"),
            ("page=", "`page` is not a number that it can be"),
            ("pages=1", "`pages` cannot be understood: unknown field"),
        ] {
            let uri = format!("/builds?{query}").parse().unwrap();
            let refused = Query::<Which>::try_from_uri(&uri).unwrap_err();
            let refused = misread(&refused.body_text());
            assert!(refused.words().message.starts_with(told), "{refused:?}");
        }
    }

    #[test]
    fn the_field_that_holds_a_letter_which_is_no_text_is_named() {
        for (body, field) in [
            (r#"{"text":"\u0000"}"#, Some("text")),
            (
                r#"{"text":"a","all":[{"of":["a","b\u0000"]}]}"#,
                Some("all[0].of[1]"),
            ),
            (r#"["a\u0000"]"#, Some("[0]")),
            // A backslash before five letters.
            (r#"{"text":"a\\u0000"}"#, None),
            (r#"{"text":"a\u0001"}"#, None),
        ] {
            assert_eq!(with_zero(body.as_bytes()).as_deref(), field, "{body}");
        }
        let refused = refuse_zero([("idea", "a"), ("words", "b\0")].into_iter());
        let words = refused.unwrap_err().words();
        assert_eq!(
            words.message,
            "`words` holds the letter U+0000, which is no text"
        );
        assert_eq!(words.next.as_deref(), Some("leave that letter out"));
    }

    #[test]
    fn what_breaks_off_is_told_of_the_body_or_of_the_field_that_it_breaks_off_in() {
        for (body, place) in [
            ("{", "the body cannot be understood"),
            (r#"{"text""#, "the body cannot be understood"),
            (r#"{"text":"#, "`text` cannot be understood"),
            (r#"{"text":1"#, "`text` cannot be understood"),
            (r#"{"text":"a","#, "the body cannot be understood"),
        ] {
            let message = parse::<Words>(body.as_bytes()).unwrap_err().words().message;
            assert!(message.starts_with(place), "{body}: {message}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused_whole() {
        let good = parse::<Words>(br#"{"text":"a"}"#);
        assert!(good.is_ok());
        for bad in [
            &b""[..],
            b"{",
            b"[]",
            br#"{"text":1}"#,
            br#"{"text":"a","text":"b"}"#,
            br#"{"text":"a","more":1}"#,
            br#"{"text":"a","count":1e400}"#,
            br#"{"text":"\ud800"}"#,
            b"{\"text\":\"\xff\"}",
            b"{\"text\":\"a\x00\"}",
            br#"{"text":"a"} trailing"#,
            br#"{"text":"a\u0000b"}"#,
        ] {
            let refused = parse::<Words>(bad).unwrap_err();
            let status = refused.into_response().status();
            assert_eq!(status, StatusCode::BAD_REQUEST, "{bad:?}");
        }
        let deep = format!("{{\"text\":{}", "[".repeat(100_000));
        assert!(parse::<Words>(deep.as_bytes()).is_err());
    }
}
