-- What people are told, one row for each who is told.
CREATE TABLE notices (
    key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    "port" TEXT COLLATE "C",
    "subject" TEXT COLLATE "C",
    "question" TEXT COLLATE "C",
    "nonce" TEXT COLLATE "C",
    "open" BIGINT,
    "due" BIGINT,
    body TEXT NOT NULL
);
CREATE INDEX notices_open ON notices ("port", "open", "due");
CREATE INDEX notices_question ON notices ("question");
CREATE INDEX notices_nonce ON notices ("nonce");
CREATE INDEX notices_subject ON notices ("subject");
