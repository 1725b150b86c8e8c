-- That an open question reaches nobody by a port is a notice to nobody; it was a timer that would have come due after ten years.
INSERT INTO notices (key, version, "port", "subject", "question", "nonce", "open", "due", body)
SELECT
    target || '/', 1, port, 'question/' || question, question, target, 0, asked_at,
    json_object(
        'key', target || '/', 'port', port, 'receiver', '', 'event_type', 'question.asked',
        'subject', 'question/' || question, 'question', question, 'text', json_object('title', ''),
        'urgent', json(urgent), 'state', 'dead', 'outdated', json('false'), 'nonce', target, 'tries', 0, 'repeats', 0,
        'error', port || ' reaches nobody', 'due', asked, 'created_at', asked
    )
FROM (
    SELECT
        timers."target" AS target, substr(timers."target", 1, instr(timers."target", '/') - 1) AS port,
        questions.key AS question, questions."asked_at" AS asked_at,
        CASE questions."kind" WHEN 'blocking' THEN 'true' ELSE 'false' END AS urgent,
        strftime('%Y-%m-%dT%H:%M:%fZ', questions."asked_at" / 1000.0, 'unixepoch') AS asked
    FROM timers
    JOIN questions ON questions.key = substr(timers."target", instr(timers."target", '/') + 1)
    WHERE timers."name" = 'notices.unreached' AND questions."state" = 'pending'
);

DELETE FROM timers WHERE "name" = 'notices.unreached';
