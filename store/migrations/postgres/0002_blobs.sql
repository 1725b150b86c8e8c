-- The data of large events: processes on several machines share nothing but the server.
CREATE TABLE blobs (
    sequence BIGINT PRIMARY KEY,
    hash TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX blobs_by_hash ON blobs (hash);

-- Finds the newest event of a chain without reading the chain.
DROP INDEX events_by_correlation;
CREATE INDEX events_by_correlation ON events (correlation, sequence);
