//! Finds in addresses what they log in with, and leaves it out of what is shown.

/// What an address that is shown or kept holds in the place of what it logs in with.
pub(crate) const LEFT_OUT: &str = "***";
/// A name that is as long stands for a login by itself: it is a token.
const SHORTEST_TOKEN: usize = 20;

/// Returns what the addresses in `text` log in with: passwords, tokens in the place of a user, and what a parameter holds
/// that is called so.
pub(crate) fn credentials(text: &str) -> impl Iterator<Item = &str> {
    let urls = text.split([',', ' ', '\n']);
    urls.flat_map(|url| credential(url).into_iter().chain(secret_parameters(url)))
}

fn credential(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split('/').next()?;
    let (user_part, _) = host.rsplit_once('@')?;
    match user_part.split_once(':') {
        Some((_, password)) => Some(password),
        None => (user_part.len() >= SHORTEST_TOKEN).then_some(user_part),
    }
}

/// Returns the values of the parameters of `url` that are secrets by their names.
fn secret_parameters(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once("://").and_then(|(_, rest)| {
        let (_, query) = rest.split_once('?')?;
        query.split('#').next()
    });
    let parameters = query.into_iter().flat_map(|query| query.split('&'));
    let named = parameters.filter_map(|parameter| parameter.split_once('='));
    named
        .filter(|(name, value)| is_secret_parameter(name) && !value.is_empty())
        .map(|(_, value)| value)
}

/// Says that a parameter of this name holds a secret: by its words, since `keyword` and `max_tokens` hold none, and
/// `sslkey` names a file.
fn is_secret_parameter(name: &str) -> bool {
    const WORDS: [&str; 11] = [
        "key",
        "apikey",
        "accesskey",
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "pass",
        "pwd",
        "credential",
    ];
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    words
        .map(str::to_ascii_lowercase)
        .any(|word| WORDS.contains(&word.as_str()))
}

/// Returns those parts of the path of a hook that are as good as a token, by their length.
pub(crate) fn tokens_of_hook(url: &url::Url) -> impl Iterator<Item = &str> {
    let parts = url.path_segments().into_iter().flatten();
    parts.filter(|part| part.len() >= SHORTEST_TOKEN)
}

/// Returns `text`, one address or several, with what they log in with, if anything, replaced by [`LEFT_OUT`].
pub(crate) fn without_password(text: &str) -> String {
    // The first may have a comma in its password.
    let first = without_login(text);
    let separators = [',', ' ', '\n'];
    let parts = first.split_inclusive(separators).map(|part| {
        let address = part.trim_end_matches(separators);
        without_login(address) + part.strip_prefix(address).unwrap_or_default()
    });
    parts.collect()
}

fn without_login(url: &str) -> String {
    let parts = url.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find('/').unwrap_or(rest.len());
        let (user_part, host) = rest.get(..end)?.rsplit_once('@')?;
        let kept = if let Some((user, _)) = user_part.split_once(':') {
            format!("{user}:")
        } else {
            credential(url)?;
            String::new()
        };
        let rest = rest.get(end..)?;
        Some(format!("{scheme}://{kept}{LEFT_OUT}@{host}{rest}"))
    });
    let shown = parts.unwrap_or_else(|| url.to_owned());
    secret_parameters(url).fold(shown, |shown, value| {
        shown.replace(&format!("={value}"), &format!("={LEFT_OUT}"))
    })
}

/// Says that whoever set a variable of this name meant it to stay unread.
pub(crate) fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 6] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSW",
        "PASSPHRASE",
        "CREDENTIAL",
    ];
    const LAST: [&str; 2] = ["PASS", "_PWD"];
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.contains(word)) || LAST.iter().any(|word| name.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        for (url, shown, secrets) in [
            (
                "postgres://ada:s3:cr@t@db:5432/rope",
                "postgres://ada:***@db:5432/rope",
                vec!["s3:cr@t"],
            ),
            ("nats://h:1", "nats://h:1", vec![]),
            (
                "postgres://db/rope?user=ada&password=s3cr%26t&sslmode=require#x",
                "postgres://db/rope?user=ada&password=***&sslmode=require#x",
                vec!["s3cr%26t"],
            ),
            (
                "https://ada:one@h/v1?api_key=two&page=1",
                "https://ada:***@h/v1?api_key=***&page=1",
                vec!["one", "two"],
            ),
            (
                "https://a-token-of-twenty-letters@h/",
                "https://***@h/",
                vec!["a-token-of-twenty-letters"],
            ),
            ("https://ada@h/?key=", "https://ada@h/?key=", vec![]),
            (
                "ws://ada:first@h1:1,ws://ada:second@h2:1",
                "ws://ada:***@h1:1,ws://ada:***@h2:1",
                vec!["first", "second"],
            ),
            (
                "https://h/?keyword=walks&max_tokens=9&bypass=on&tokenizer=t",
                "https://h/?keyword=walks&max_tokens=9&bypass=on&tokenizer=t",
                vec![],
            ),
            (
                "postgres://h/d?sslkey=/etc/key.pem&sslkey=%2Fetc%2Fkey",
                "postgres://h/d?sslkey=/etc/key.pem&sslkey=%2Fetc%2Fkey",
                vec![],
            ),
        ] {
            assert_eq!(without_password(url), shown);
            assert_eq!(credentials(url).collect::<Vec<_>>(), secrets, "{url}");
        }
    }
}
