-- Keys and what lists order by compare byte by byte, whatever the locale of the server: COLLATE "C".

-- Counters: `token` (leases), `routing` (grows when a subscription changes), `floor` (above every version of a deleted row),
-- `sequence` (the last sequence of a deleted event).
CREATE TABLE counters (
    name TEXT COLLATE "C" PRIMARY KEY,
    value BIGINT NOT NULL
);

INSERT INTO counters (name, value) VALUES ('token', 0), ('routing', 0), ('floor', 0), ('sequence', 0);

-- The last transaction of each writer, so that one whose connection broke in a commit can learn what became of it.
CREATE TABLE writers (
    id TEXT COLLATE "C" PRIMARY KEY,
    batch BIGINT NOT NULL,
    at BIGINT NOT NULL
);

-- Events in commit order; `body` is the CloudEvent.
CREATE TABLE events (
    sequence BIGINT PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    type TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    correlation TEXT COLLATE "C" NOT NULL,
    priority BIGINT NOT NULL,
    time BIGINT NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX events_by_subject ON events (subject);
CREATE INDEX events_by_correlation ON events (correlation);

-- A sequence is never given twice, even if the newest events are deleted.
CREATE FUNCTION remember_sequence() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE counters SET value = GREATEST(value, (SELECT MAX(sequence) FROM gone)) WHERE name = 'sequence';
    RETURN NULL;
END
$$;

CREATE TRIGGER events_deleted AFTER DELETE ON events REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION remember_sequence();

CREATE TABLE subscriptions (
    name TEXT COLLATE "C" PRIMARY KEY,
    patterns TEXT NOT NULL,
    since BIGINT NOT NULL
);

-- One row per event and routed subscriber: outbox, inbox, attempt counter and dead letter in one.
CREATE TABLE deliveries (
    sequence BIGINT NOT NULL,
    subscriber TEXT COLLATE "C" NOT NULL,
    entity TEXT COLLATE "C" NOT NULL,
    priority BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    attempts BIGINT NOT NULL,
    due BIGINT NOT NULL,
    error TEXT,
    closed_at BIGINT,
    PRIMARY KEY (sequence, subscriber)
);

CREATE INDEX deliveries_open ON deliveries (subscriber, sequence) WHERE state = 'open';
-- Dead letters are few among many done rows.
CREATE INDEX deliveries_kept ON deliveries (state, sequence) WHERE state NOT IN ('open', 'done');

-- Records: index columns are copies of what `body` says.

CREATE TABLE ideas (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "user" TEXT COLLATE "C",
    "state" TEXT COLLATE "C",
    "created_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX ideas_by_state ON ideas ("state");

CREATE TABLE sessions (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "idea" TEXT COLLATE "C",
    "user" TEXT COLLATE "C",
    "phase" TEXT COLLATE "C",
    "updated_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX sessions_by_idea ON sessions ("idea");

CREATE TABLE messages (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "session" TEXT COLLATE "C",
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX messages_by_session_at ON messages ("session", "at");

CREATE TABLE specifications (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "idea" TEXT COLLATE "C",
    "user" TEXT COLLATE "C",
    "state" TEXT COLLATE "C",
    "created_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX specifications_by_idea ON specifications ("idea");

CREATE TABLE revisions (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "spec" TEXT COLLATE "C",
    "number" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX revisions_by_spec_number ON revisions ("spec", "number");

CREATE TABLE builds (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "idea" TEXT COLLATE "C",
    "spec" TEXT COLLATE "C",
    "user" TEXT COLLATE "C",
    "state" TEXT COLLATE "C",
    "priority" BIGINT,
    "created_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX builds_by_state ON builds ("state");
CREATE INDEX builds_by_idea ON builds ("idea");
CREATE INDEX builds_by_spec ON builds ("spec");

CREATE TABLE tasks (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT COLLATE "C",
    "task" TEXT COLLATE "C",
    "number" BIGINT,
    "state" TEXT COLLATE "C",
    "waiting_for" TEXT COLLATE "C",
    "assigned_to" TEXT COLLATE "C",
    body TEXT NOT NULL
);

CREATE INDEX tasks_by_build_state_number ON tasks ("build", "state", "number");

CREATE TABLE attempts (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT COLLATE "C",
    "task" TEXT COLLATE "C",
    "number" BIGINT,
    "state" TEXT COLLATE "C",
    "loop_name" TEXT COLLATE "C",
    body TEXT NOT NULL
);

CREATE INDEX attempts_by_build_task_number ON attempts ("build", "task", "number");
CREATE INDEX attempts_by_state ON attempts ("state");

CREATE TABLE evidence (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT COLLATE "C",
    "task" TEXT COLLATE "C",
    "attempt" TEXT COLLATE "C",
    "commit" TEXT COLLATE "C",
    "tree" TEXT COLLATE "C",
    "verdict" TEXT COLLATE "C",
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX evidence_by_build_task ON evidence ("build", "task");
CREATE INDEX evidence_by_tree ON evidence ("tree");

CREATE TABLE leases (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT COLLATE "C",
    "task" TEXT COLLATE "C",
    "attempt" TEXT COLLATE "C",
    "state" TEXT COLLATE "C",
    "token" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX leases_by_state ON leases ("state");
CREATE INDEX leases_by_build ON leases ("build");

CREATE TABLE ownership (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT COLLATE "C",
    body TEXT NOT NULL
);

CREATE INDEX ownership_by_build ON ownership ("build");

CREATE TABLE waits (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT COLLATE "C",
    "waiter" TEXT COLLATE "C",
    "kind" TEXT COLLATE "C",
    "resource" TEXT COLLATE "C",
    "holder" TEXT COLLATE "C",
    "since" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX waits_by_build ON waits ("build");
CREATE INDEX waits_by_resource ON waits ("resource");

CREATE TABLE questions (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "state" TEXT COLLATE "C",
    "kind" TEXT COLLATE "C",
    "trigger" TEXT COLLATE "C",
    "agent" TEXT COLLATE "C",
    "idea" TEXT COLLATE "C",
    "build" TEXT COLLATE "C",
    "due" BIGINT,
    "asked_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX questions_by_state_due ON questions ("state", "due");
CREATE INDEX questions_by_idea ON questions ("idea");
CREATE INDEX questions_by_build ON questions ("build");

CREATE TABLE knowledge (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "kind" TEXT COLLATE "C",
    "state" TEXT COLLATE "C",
    "updated_at" BIGINT,
    body TEXT NOT NULL,
    -- What the search looks in, kept by a trigger.
    words TSVECTOR
);

CREATE INDEX knowledge_by_words ON knowledge USING gin (words);
CREATE INDEX knowledge_by_state_kind ON knowledge ("state", "kind");

CREATE TABLE injections (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "item" TEXT COLLATE "C",
    "build" TEXT COLLATE "C",
    "spec" TEXT COLLATE "C",
    "task" TEXT COLLATE "C",
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX injections_by_build ON injections ("build");
CREATE INDEX injections_by_spec ON injections ("spec");

CREATE TABLE reviews (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "kind" TEXT COLLATE "C",
    "idea" TEXT COLLATE "C",
    "build" TEXT COLLATE "C",
    "spec" TEXT COLLATE "C",
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX reviews_by_idea ON reviews ("idea");
CREATE INDEX reviews_by_build ON reviews ("build");

CREATE TABLE components (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "role" TEXT COLLATE "C",
    "state" TEXT COLLATE "C",
    "last_seen" BIGINT,
    body TEXT NOT NULL
);


CREATE TABLE alerts (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT COLLATE "C",
    "cleared" BIGINT,
    "raised_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX alerts_by_cleared ON alerts ("cleared");

CREATE TABLE model_calls (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "role" TEXT COLLATE "C",
    "idea" TEXT COLLATE "C",
    "build" TEXT COLLATE "C",
    "task" TEXT COLLATE "C",
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX model_calls_by_build ON model_calls ("build");
CREATE INDEX model_calls_by_at ON model_calls ("at");

CREATE TABLE timers (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "name" TEXT COLLATE "C",
    "target" TEXT COLLATE "C",
    "due" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX timers_by_due ON timers ("due");
CREATE INDEX timers_by_target ON timers ("target");

-- Words without marks above or below their letters, and with nothing else between them than blanks.
CREATE FUNCTION plain_words(said TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(
        regexp_replace(normalize(said, NFD), '[\u0300-\u036f]+', '', 'g'),
        '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+', ' ', 'g'
    )
$$;

CREATE FUNCTION read_knowledge() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    said TEXT;
BEGIN
    BEGIN
        said := concat_ws(' ', new.body::json ->> 'content', new.body::json ->> 'topics');
    EXCEPTION WHEN untranslatable_character THEN
        -- A zero byte is the one letter that a text cannot hold.
        said := new.body;
    END;
    new.words := to_tsvector('pg_catalog.simple', plain_words(said));
    RETURN new;
END
$$;

CREATE TRIGGER knowledge_written BEFORE INSERT OR UPDATE ON knowledge
FOR EACH ROW EXECUTE FUNCTION read_knowledge();
