-- What people want done about the branches of builds, until it is done.
CREATE TABLE wishes (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "at" BIGINT,
    body TEXT NOT NULL
);
