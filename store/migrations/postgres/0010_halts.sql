-- That people have stopped everything: one row.
CREATE TABLE halts (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "since" BIGINT,
    body TEXT NOT NULL
);
