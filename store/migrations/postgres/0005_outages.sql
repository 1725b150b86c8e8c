-- Providers of models that are away, or were.
CREATE TABLE outages (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "open" BIGINT,
    "since" BIGINT,
    body TEXT NOT NULL
);
