-- Where the data of a large event lies: by its hash in a file beside the database.
CREATE TABLE blobs (
    sequence INTEGER PRIMARY KEY,
    hash TEXT NOT NULL
);

CREATE INDEX blobs_by_hash ON blobs (hash);
