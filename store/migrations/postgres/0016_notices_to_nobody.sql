-- That an open question reaches nobody by a port is a notice to nobody; it was a timer that would have come due after ten years.
INSERT INTO notices (key, version, "port", "subject", "question", "nonce", "open", "due", body)
SELECT
    target || '/', 1, port, 'question/' || question, question, target, 0, asked_at,
    json_build_object(
        'key', target || '/', 'port', port, 'receiver', '', 'event_type', 'question.asked',
        'subject', 'question/' || question, 'question', question, 'text', json_build_object('title', ''),
        'urgent', urgent, 'state', 'dead', 'outdated', false, 'nonce', target, 'tries', 0, 'repeats', 0,
        'error', port || ' reaches nobody', 'due', asked, 'created_at', asked
    )::text
FROM (
    SELECT
        timers."target" AS target, split_part(timers."target", '/', 1) AS port,
        questions.key AS question, questions."asked_at" AS asked_at, questions."kind" = 'blocking' AS urgent,
        to_char(to_timestamp(questions."asked_at" / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS asked
    FROM timers
    JOIN questions ON questions.key = split_part(timers."target", '/', 2)
    WHERE timers."name" = 'notices.unreached' AND questions."state" = 'pending'
) AS unreached;

DELETE FROM timers WHERE "name" = 'notices.unreached';
