-- That people have stopped everything: one row.
CREATE TABLE halts (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "since" BIGINT,
    body TEXT NOT NULL
);
