//! Reads what Telegram brings, and of that no more than is needed: a field that is left out, or that the Bot API got later,
//! keeps nobody from being heard.

use std::time::Duration;

use ropewalk_schemas::phone::ChatUser;
use serde::Deserialize;
use serde_json::Value;

use crate::api::{File, Interaction, Kind, Update};

/// An update as Telegram writes it; one of a sort that nobody asked for holds neither.
#[derive(Deserialize)]
pub(super) struct WrittenUpdate {
    update_id: i64,
    message: Option<Value>,
    callback_query: Option<Value>,
}

impl From<WrittenUpdate> for Update {
    fn from(written: WrittenUpdate) -> Self {
        let (from, did) = match (&written.message, &written.callback_query) {
            (Some(message), _) => (sender(&message["from"], &message["chat"]), said(message)),
            (None, Some(press)) => pressed(press),
            (None, None) => (None, Interaction::Other),
        };
        Self {
            id: written.update_id,
            from,
            did,
        }
    }
}

/// Returns who it is, and in which chat; nobody where it is a bot, or where that is not said.
fn sender(user: &Value, chat: &Value) -> Option<ChatUser> {
    let is_person = user["is_bot"].as_bool() == Some(false);
    let (user, chat) = (user["id"].as_i64()?, chat["id"].as_i64()?);
    is_person.then_some(ChatUser { user, chat })
}

fn said(message: &Value) -> Interaction {
    let forwarded = !message["forward_origin"].is_null();
    let words = |field: &str| message[field].as_str().map(str::to_owned);
    if let Some(text) = words("text") {
        return Interaction::Wrote {
            text,
            reply_to: number(&message["reply_to_message"]),
            forwarded,
            private: message["chat"]["type"] == "private",
        };
    }
    match file_of(message) {
        Some(file) => Interaction::Sent {
            file,
            words: words("caption").unwrap_or_default(),
            forwarded,
        },
        None => Interaction::Other,
    }
}

fn pressed(press: &Value) -> (Option<ChatUser>, Interaction) {
    let message = &press["message"];
    let (id, data) = (press["id"].as_str(), press["data"].as_str());
    let (Some(id), Some(data), Some(number)) = (id, data, number(message)) else {
        return (None, Interaction::Other);
    };
    let did = Interaction::Pressed {
        press: id.to_owned(),
        message: number,
        data: data.to_owned(),
    };
    (sender(&press["from"], &message["chat"]), did)
}

/// Returns the number of a message in its chat.
fn number(message: &Value) -> Option<i32> {
    let number = message["message_id"].as_i64()?;
    i32::try_from(number).ok()
}

/// Returns the file that a message brings: the largest of the sizes of a photo.
fn file_of(message: &Value) -> Option<File> {
    if let Some(photo) = message["photo"].as_array().and_then(|sizes| sizes.last()) {
        return Some(File {
            media_type: Some("image/jpeg".to_owned()),
            ..file(photo, Kind::Photo, "photo.jpg")?
        });
    }
    let voice = &message["voice"];
    if voice.is_object() {
        let length = Duration::from_secs(voice["duration"].as_u64().unwrap_or_default());
        return file(voice, Kind::Voice(length), "voice-note.ogg");
    }
    ["document", "audio", "video"]
        .into_iter()
        .find_map(|sort| file(&message[sort], Kind::Document, sort))
}

/// Reads a file that is called `unnamed` where its sender gave it no name. What else may be said of it is often not.
fn file(written: &Value, kind: Kind, unnamed: &str) -> Option<File> {
    let words = |field: &str| written[field].as_str().map(str::to_owned);
    Some(File {
        id: words("file_id")?,
        kind,
        name: words("file_name").unwrap_or_else(|| unnamed.to_owned()),
        media_type: words("mime_type"),
        size_bytes: written["file_size"].as_u64(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client;

    /// Reads what Ann sent: `kind` and `sent` as Telegram writes them.
    fn read(kind: &str, sent: Value) -> Update {
        let mut message = json!({
            "message_id": 9, "from": { "id": 1, "first_name": "Ann", "is_bot": false }, "date": 1_795_294_145,
            "chat": { "id": 1, "type": "private", "first_name": "Ann" },
        });
        message[kind] = sent;
        let update = json!({ "update_id": 7, "message": message }).to_string();
        client::parse(update.as_bytes()).unwrap()
    }

    #[test]
    fn a_file_of_which_telegram_says_nothing_but_what_it_is_fetched_by_is_a_file() {
        let length = |seconds| Kind::Voice(Duration::from_secs(seconds));
        for (kind, sent, sort, name, media_type) in [
            (
                "voice",
                json!({ "file_id": "f", "duration": 12 }),
                length(12),
                "voice-note.ogg",
                None,
            ),
            (
                "voice",
                json!({ "file_id": "f", "duration": 12, "mime_type": "audio/ogg" }),
                length(12),
                "voice-note.ogg",
                Some("audio/ogg"),
            ),
            (
                "voice",
                json!({ "file_id": "f", "duration": "long", "mime_type": 3, "something_new": [] }),
                length(0),
                "voice-note.ogg",
                None,
            ),
            (
                "audio",
                json!({ "file_id": "f", "duration": 12 }),
                Kind::Document,
                "audio",
                None,
            ),
            (
                "video",
                json!({ "file_id": "f", "file_name": "a.mp4" }),
                Kind::Document,
                "a.mp4",
                None,
            ),
            (
                "document",
                json!({ "file_id": "f", "mime_type": "text/plain" }),
                Kind::Document,
                "document",
                Some("text/plain"),
            ),
            (
                "photo",
                json!([{ "file_id": "small" }, { "file_id": "f" }]),
                Kind::Photo,
                "photo.jpg",
                Some("image/jpeg"),
            ),
        ] {
            let update = read(kind, sent);
            let file = File {
                id: "f".to_owned(),
                kind: sort,
                name: name.to_owned(),
                media_type: media_type.map(str::to_owned),
                size_bytes: None,
            };
            let did = Interaction::Sent {
                file,
                words: String::new(),
                forwarded: false,
            };
            assert_eq!(update.did, did, "{kind}");
            assert!(update.from.is_some(), "{kind}");
        }
    }

    #[test]
    fn whoever_sends_what_is_not_read_is_known_all_the_same_and_words_are_read_whatever_came_later()
    {
        for (kind, sent) in [
            ("sticker", json!({ "file_id": "f" })),
            ("voice", json!({ "duration": 12 })),
            ("photo", json!([])),
            ("text", json!(5)),
            ("something_new", json!({})),
        ] {
            let update = read(kind, sent);
            assert_eq!(update.did, Interaction::Other, "{kind}");
            assert!(update.from.is_some(), "{kind}");
        }
        let words = json!({ "update_id": 7, "message": {
            "from": { "id": 1, "is_bot": false }, "chat": { "id": 1, "type": "private" }, "text": "On 2 May",
            "entities": [{ "type": "something_new", "offset": 3, "length": 5 }], "forward_origin": { "type": "something_new" },
        } });
        let update = client::parse(words.to_string().as_bytes()).unwrap();
        let wrote = Interaction::Wrote {
            text: "On 2 May".to_owned(),
            reply_to: None,
            forwarded: true,
            private: true,
        };
        assert_eq!(update.did, wrote);
    }
}
