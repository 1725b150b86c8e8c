-- Providers of models that are away, or were.
CREATE TABLE outages (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "open" BIGINT,
    "since" BIGINT,
    body TEXT NOT NULL
);
