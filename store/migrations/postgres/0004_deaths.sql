-- What the program died of and has not got past since.
CREATE TABLE deaths (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "count" BIGINT,
    body TEXT NOT NULL
);
