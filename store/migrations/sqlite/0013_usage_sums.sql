-- What each call used, as its body says it.
CREATE VIEW usage_of_calls AS
SELECT
    key,
    version,
    "role",
    "idea",
    "build",
    "task",
    "at",
    COALESCE("at", 0) / 86400000 AS day,
    -- Calls of before providers were written down have none.
    COALESCE(COALESCE((body ->> '$.provider') || '/', '') || (body ->> '$.model'), '') AS model,
    1 AS calls,
    COALESCE(body ->> '$.input_tokens', 0) AS input_tokens,
    COALESCE(body ->> '$.output_tokens', 0) AS output_tokens,
    COALESCE(body ->> '$.cache_read_tokens', 0) AS cache_read_tokens,
    COALESCE(body ->> '$.cache_write_tokens', 0) AS cache_write_tokens,
    COALESCE(body ->> '$.micro_usd', 0) AS micro_usd,
    (body ->> '$.micro_usd') IS NOT NULL AS priced_calls
FROM model_calls;

-- The same in sums, kept by the triggers below, so that nobody reads every call to say what all of them used. Calls for no
-- idea or no build stand under the empty text: a key of several columns takes nothing for different from nothing. What comes
-- to more than 64 bits goes on as a real number instead of refusing the call.
CREATE TABLE usage_sums (
    "idea" TEXT NOT NULL,
    "build" TEXT NOT NULL,
    day BIGINT NOT NULL,
    model TEXT NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    micro_usd BIGINT NOT NULL,
    priced_calls BIGINT NOT NULL,
    PRIMARY KEY ("idea", "build", day, model)
) WITHOUT ROWID;

CREATE INDEX usage_sums_by_build ON usage_sums ("build");
CREATE INDEX usage_sums_by_day ON usage_sums (day);

INSERT INTO usage_sums
SELECT
    COALESCE("idea", ''), COALESCE("build", ''), day, model, COUNT(*), SUM(input_tokens), SUM(output_tokens),
    SUM(cache_read_tokens), SUM(cache_write_tokens), SUM(micro_usd), SUM(priced_calls)
FROM usage_of_calls
GROUP BY 1, 2, 3, 4;

-- And for each idea, build, day or model as a whole, which is what people are told: of many ideas there are many times as
-- many sums.
CREATE TABLE usage_totals (
    what TEXT NOT NULL,
    key TEXT NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    micro_usd BIGINT NOT NULL,
    priced_calls BIGINT NOT NULL,
    PRIMARY KEY (what, key)
) WITHOUT ROWID;

INSERT INTO usage_totals
SELECT
    what, key, SUM(calls), TOTAL(input_tokens), TOTAL(output_tokens), TOTAL(cache_read_tokens), TOTAL(cache_write_tokens),
    TOTAL(micro_usd), SUM(priced_calls)
FROM (
    SELECT 'idea' AS what, "idea" AS key, * FROM usage_sums
    UNION ALL SELECT 'build', "build", * FROM usage_sums
    UNION ALL SELECT 'model', model, * FROM usage_sums
    UNION ALL SELECT 'day', day, * FROM usage_sums
)
GROUP BY 1, 2;

-- What is inserted here is added to the sums: a call with the sign 1 when it comes, with -1 when it goes.
CREATE VIEW usage_changes AS
SELECT usage_of_calls.*, 1 AS sign FROM usage_of_calls;

CREATE TRIGGER usage_changed INSTEAD OF INSERT ON usage_changes BEGIN
    INSERT INTO usage_sums
    VALUES (
        COALESCE(new."idea", ''), COALESCE(new."build", ''), new.day, new.model, new.sign * new.calls,
        new.sign * new.input_tokens, new.sign * new.output_tokens, new.sign * new.cache_read_tokens,
        new.sign * new.cache_write_tokens, new.sign * new.micro_usd, new.sign * new.priced_calls
    )
    ON CONFLICT DO UPDATE SET
        calls = calls + excluded.calls,
        input_tokens = input_tokens + excluded.input_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        micro_usd = micro_usd + excluded.micro_usd,
        priced_calls = priced_calls + excluded.priced_calls;
    DELETE FROM usage_sums
    WHERE "idea" = COALESCE(new."idea", '') AND "build" = COALESCE(new."build", '')
        AND day = new.day AND model = new.model AND calls = 0;
    INSERT INTO usage_totals
    SELECT
        counted.what, counted.key, new.sign * new.calls, new.sign * new.input_tokens, new.sign * new.output_tokens,
        new.sign * new.cache_read_tokens, new.sign * new.cache_write_tokens, new.sign * new.micro_usd,
        new.sign * new.priced_calls
    FROM (
        SELECT 'idea' AS what, COALESCE(new."idea", '') AS key
        UNION ALL SELECT 'build', COALESCE(new."build", '')
        UNION ALL SELECT 'model', new.model
        UNION ALL SELECT 'day', new.day
    ) AS counted
    -- Without it what follows would be read as part of the join.
    WHERE true
    ON CONFLICT DO UPDATE SET
        calls = calls + excluded.calls,
        input_tokens = input_tokens + excluded.input_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        micro_usd = micro_usd + excluded.micro_usd,
        priced_calls = priced_calls + excluded.priced_calls;
    DELETE FROM usage_totals
    WHERE new.sign < 0 AND calls = 0 AND (what, key) IN (
        VALUES ('idea', COALESCE(new."idea", '')), ('build', COALESCE(new."build", '')), ('model', new.model),
            ('day', CAST(new.day AS TEXT))
    );
END;

CREATE TRIGGER model_calls_inserted AFTER INSERT ON model_calls BEGIN
    INSERT INTO usage_changes SELECT *, 1 FROM usage_of_calls WHERE key = new.key;
END;

-- Before, while the row is still what it was.
CREATE TRIGGER model_calls_updating BEFORE UPDATE ON model_calls BEGIN
    INSERT INTO usage_changes SELECT *, -1 FROM usage_of_calls WHERE key = old.key;
END;

CREATE TRIGGER model_calls_updated AFTER UPDATE ON model_calls BEGIN
    INSERT INTO usage_changes SELECT *, 1 FROM usage_of_calls WHERE key = new.key;
END;

CREATE TRIGGER model_calls_deleting BEFORE DELETE ON model_calls BEGIN
    INSERT INTO usage_changes SELECT *, -1 FROM usage_of_calls WHERE key = old.key;
END;

-- The sums do not tell tasks apart: the budget of one reads its own calls.
DROP INDEX model_calls_by_build;
CREATE INDEX model_calls_by_build_task ON model_calls ("build", "task");

-- What was learned is listed by when it changed, the newest first.
CREATE INDEX knowledge_by_updated_at ON knowledge ("updated_at" DESC, key);
