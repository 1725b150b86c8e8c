-- What people want done about the branches of builds, until it is done.
CREATE TABLE wishes (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "at" BIGINT,
    body TEXT NOT NULL
);
