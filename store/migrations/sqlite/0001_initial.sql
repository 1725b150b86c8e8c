-- Counters: `token` (leases), `routing` (grows when a subscription changes), `floor` (above every version of a deleted row).
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);

INSERT INTO counters (name, value) VALUES ('token', 0), ('routing', 0), ('floor', 0);

-- Events in commit order; `body` is the CloudEvent.
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    source TEXT NOT NULL,
    subject TEXT NOT NULL,
    correlation TEXT NOT NULL,
    priority BIGINT NOT NULL,
    time BIGINT NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX events_by_subject ON events (subject);
CREATE INDEX events_by_correlation ON events (correlation);

CREATE TABLE subscriptions (
    name TEXT PRIMARY KEY,
    patterns TEXT NOT NULL,
    since BIGINT NOT NULL
);

-- One row per event and routed subscriber: outbox, inbox, attempt counter and dead letter in one.
CREATE TABLE deliveries (
    sequence BIGINT NOT NULL,
    subscriber TEXT NOT NULL,
    entity TEXT NOT NULL,
    priority BIGINT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    due BIGINT NOT NULL,
    error TEXT,
    closed_at BIGINT,
    PRIMARY KEY (sequence, subscriber)
) WITHOUT ROWID;

CREATE INDEX deliveries_open ON deliveries (subscriber, sequence) WHERE state = 'open';
-- Dead letters are few among many done rows.
CREATE INDEX deliveries_kept ON deliveries (state, sequence) WHERE state NOT IN ('open', 'done');

-- Records: index columns are copies of what `body` says.

CREATE TABLE ideas (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "user" TEXT,
    "state" TEXT,
    "created_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX ideas_by_state ON ideas ("state");

CREATE TABLE sessions (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "idea" TEXT,
    "user" TEXT,
    "phase" TEXT,
    "updated_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX sessions_by_idea ON sessions ("idea");

CREATE TABLE messages (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "session" TEXT,
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX messages_by_session_at ON messages ("session", "at");

CREATE TABLE specifications (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "idea" TEXT,
    "user" TEXT,
    "state" TEXT,
    "created_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX specifications_by_idea ON specifications ("idea");

CREATE TABLE revisions (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "spec" TEXT,
    "number" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX revisions_by_spec_number ON revisions ("spec", "number");

CREATE TABLE builds (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "idea" TEXT,
    "spec" TEXT,
    "user" TEXT,
    "state" TEXT,
    "priority" BIGINT,
    "created_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX builds_by_state ON builds ("state");
CREATE INDEX builds_by_idea ON builds ("idea");
CREATE INDEX builds_by_spec ON builds ("spec");

CREATE TABLE tasks (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT,
    "task" TEXT,
    "number" BIGINT,
    "state" TEXT,
    "waiting_for" TEXT,
    "assigned_to" TEXT,
    body TEXT NOT NULL
);

CREATE INDEX tasks_by_build_state_number ON tasks ("build", "state", "number");

CREATE TABLE attempts (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT,
    "task" TEXT,
    "number" BIGINT,
    "state" TEXT,
    "loop_name" TEXT,
    body TEXT NOT NULL
);

CREATE INDEX attempts_by_build_task_number ON attempts ("build", "task", "number");
CREATE INDEX attempts_by_state ON attempts ("state");

CREATE TABLE evidence (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT,
    "task" TEXT,
    "attempt" TEXT,
    "commit" TEXT,
    "tree" TEXT,
    "verdict" TEXT,
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX evidence_by_build_task ON evidence ("build", "task");
CREATE INDEX evidence_by_tree ON evidence ("tree");

CREATE TABLE leases (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT,
    "task" TEXT,
    "attempt" TEXT,
    "state" TEXT,
    "token" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX leases_by_state ON leases ("state");
CREATE INDEX leases_by_build ON leases ("build");

CREATE TABLE ownership (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT,
    body TEXT NOT NULL
);

CREATE INDEX ownership_by_build ON ownership ("build");

CREATE TABLE waits (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT,
    "waiter" TEXT,
    "kind" TEXT,
    "resource" TEXT,
    "holder" TEXT,
    "since" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX waits_by_build ON waits ("build");
CREATE INDEX waits_by_resource ON waits ("resource");

CREATE TABLE questions (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "state" TEXT,
    "kind" TEXT,
    "trigger" TEXT,
    "agent" TEXT,
    "idea" TEXT,
    "build" TEXT,
    "due" BIGINT,
    "asked_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX questions_by_state_due ON questions ("state", "due");
CREATE INDEX questions_by_idea ON questions ("idea");
CREATE INDEX questions_by_build ON questions ("build");

CREATE TABLE knowledge (
    -- A number of its own, because the text index refers to it and an implicit one may change.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    version BIGINT NOT NULL,
    "kind" TEXT,
    "state" TEXT,
    "updated_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX knowledge_by_state_kind ON knowledge ("state", "kind");

CREATE TABLE injections (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "item" TEXT,
    "build" TEXT,
    "spec" TEXT,
    "task" TEXT,
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX injections_by_build ON injections ("build");
CREATE INDEX injections_by_spec ON injections ("spec");

CREATE TABLE reviews (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "kind" TEXT,
    "idea" TEXT,
    "build" TEXT,
    "spec" TEXT,
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX reviews_by_idea ON reviews ("idea");
CREATE INDEX reviews_by_build ON reviews ("build");

CREATE TABLE components (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "role" TEXT,
    "state" TEXT,
    "last_seen" BIGINT,
    body TEXT NOT NULL
);


CREATE TABLE alerts (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "build" TEXT,
    "cleared" BIGINT,
    "raised_at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX alerts_by_cleared ON alerts ("cleared");

CREATE TABLE model_calls (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "role" TEXT,
    "idea" TEXT,
    "build" TEXT,
    "task" TEXT,
    "at" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX model_calls_by_build ON model_calls ("build");
CREATE INDEX model_calls_by_at ON model_calls ("at");

CREATE TABLE timers (
    key TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "name" TEXT,
    "target" TEXT,
    "due" BIGINT,
    body TEXT NOT NULL
);

CREATE INDEX timers_by_due ON timers ("due");
CREATE INDEX timers_by_target ON timers ("target");

-- The text of knowledge items, kept by triggers.
CREATE VIRTUAL TABLE knowledge_text USING fts5 (content, topics, tokenize = 'unicode61 remove_diacritics 2');

CREATE TRIGGER knowledge_inserted AFTER INSERT ON knowledge BEGIN
    INSERT INTO knowledge_text (rowid, content, topics)
    VALUES (new.number, new.body ->> '$.content', new.body ->> '$.topics');
END;

CREATE TRIGGER knowledge_updated AFTER UPDATE ON knowledge
WHEN old.body ->> '$.content' IS NOT new.body ->> '$.content' OR old.body ->> '$.topics' IS NOT new.body ->> '$.topics'
BEGIN
    UPDATE knowledge_text SET content = new.body ->> '$.content', topics = new.body ->> '$.topics'
    WHERE rowid = new.number;
END;

CREATE TRIGGER knowledge_deleted AFTER DELETE ON knowledge BEGIN
    DELETE FROM knowledge_text WHERE rowid = old.number;
END;
