-- The phones of people: who they are in Telegram, and what is talked about there.
CREATE TABLE phones (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "listens" BIGINT,
    body TEXT NOT NULL
);
