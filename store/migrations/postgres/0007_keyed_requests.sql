-- What was asked under a key, so that it is done once.
CREATE TABLE keyed_requests (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "at" BIGINT,
    body TEXT NOT NULL
);
CREATE INDEX keyed_requests_at ON keyed_requests ("at");
