-- What a call used, as its body says it. A zero byte is the one letter that a text cannot hold, and no number needs it.
CREATE FUNCTION usage_in_body(body TEXT) RETURNS TABLE (
    model TEXT, calls BIGINT, input_tokens NUMERIC, output_tokens NUMERIC, cache_read_tokens NUMERIC,
    cache_write_tokens NUMERIC, micro_usd NUMERIC, priced_calls BIGINT
) LANGUAGE sql IMMUTABLE AS $$
    SELECT
        -- Calls of before providers were written down have none.
        COALESCE(COALESCE(said.provider || '/', '') || said.model, ''),
        1::bigint,
        COALESCE(said.input_tokens, 0),
        COALESCE(said.output_tokens, 0),
        COALESCE(said.cache_read_tokens, 0),
        COALESCE(said.cache_write_tokens, 0),
        COALESCE(said.micro_usd, 0),
        (said.micro_usd IS NOT NULL)::int::bigint
    FROM jsonb_to_record(replace(body, '\u0000', '\ufffd')::jsonb) AS said (
        provider TEXT, model TEXT, input_tokens NUMERIC, output_tokens NUMERIC, cache_read_tokens NUMERIC,
        cache_write_tokens NUMERIC, micro_usd NUMERIC
    )
$$;

CREATE VIEW usage_of_calls AS
SELECT key, version, "role", "idea", "build", "task", "at", COALESCE("at", 0) / 86400000 AS day, used.*
FROM model_calls CROSS JOIN LATERAL usage_in_body(body) AS used;

-- The same in sums, kept by a trigger, so that nobody reads every call to say what all of them used. Calls for no idea or no
-- build stand under the empty text: a key of several columns takes nothing for different from nothing. What comes to more
-- than 64 bits is kept whole instead of refusing the call.
CREATE TABLE usage_sums (
    "idea" TEXT COLLATE "C" NOT NULL,
    "build" TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens NUMERIC NOT NULL,
    output_tokens NUMERIC NOT NULL,
    cache_read_tokens NUMERIC NOT NULL,
    cache_write_tokens NUMERIC NOT NULL,
    micro_usd NUMERIC NOT NULL,
    priced_calls BIGINT NOT NULL,
    PRIMARY KEY ("idea", "build", day, model)
);

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
    what TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens NUMERIC NOT NULL,
    output_tokens NUMERIC NOT NULL,
    cache_read_tokens NUMERIC NOT NULL,
    cache_write_tokens NUMERIC NOT NULL,
    micro_usd NUMERIC NOT NULL,
    priced_calls BIGINT NOT NULL,
    PRIMARY KEY (what, key)
);

INSERT INTO usage_totals
SELECT
    counted.what, counted.key, SUM(calls), SUM(input_tokens), SUM(output_tokens), SUM(cache_read_tokens),
    SUM(cache_write_tokens), SUM(micro_usd), SUM(priced_calls)
FROM usage_sums CROSS JOIN LATERAL (
    VALUES ('idea', "idea"), ('build', "build"), ('model', model), ('day', day::text)
) AS counted (what, key)
GROUP BY 1, 2;

-- Adds a call to the sums: with the sign 1 when it comes, with -1 when it goes.
--
-- One row for each key, and no shards or rows to be summed up later: whoever writes holds the one lock of the schema on
-- writing (`Dialect::begin`) from the begin of the transaction to its end, so two transactions never wait for each other's
-- sums, in whatever order they touch them.
CREATE FUNCTION change_usage(sign INT, call model_calls) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    used RECORD;
    for_idea TEXT := COALESCE(call."idea", '');
    for_build TEXT := COALESCE(call."build", '');
    on_day BIGINT := COALESCE(call."at", 0) / 86400000;
BEGIN
    SELECT * INTO used FROM usage_in_body(call.body);
    INSERT INTO usage_sums AS sums
    VALUES (
        for_idea, for_build, on_day, used.model, sign * used.calls, sign * used.input_tokens, sign * used.output_tokens,
        sign * used.cache_read_tokens, sign * used.cache_write_tokens, sign * used.micro_usd, sign * used.priced_calls
    )
    ON CONFLICT ("idea", "build", day, model) DO UPDATE SET
        calls = sums.calls + excluded.calls,
        input_tokens = sums.input_tokens + excluded.input_tokens,
        output_tokens = sums.output_tokens + excluded.output_tokens,
        cache_read_tokens = sums.cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = sums.cache_write_tokens + excluded.cache_write_tokens,
        micro_usd = sums.micro_usd + excluded.micro_usd,
        priced_calls = sums.priced_calls + excluded.priced_calls;
    DELETE FROM usage_sums AS sums
    WHERE sign < 0 AND sums."idea" = for_idea AND sums."build" = for_build AND sums.day = on_day
        AND sums.model = used.model AND sums.calls = 0;
    INSERT INTO usage_totals AS totals
    SELECT
        counted.what, counted.key, sign * used.calls, sign * used.input_tokens, sign * used.output_tokens,
        sign * used.cache_read_tokens, sign * used.cache_write_tokens, sign * used.micro_usd, sign * used.priced_calls
    FROM (
        VALUES ('idea', for_idea), ('build', for_build), ('model', used.model), ('day', on_day::text)
    ) AS counted (what, key)
    ON CONFLICT (what, key) DO UPDATE SET
        calls = totals.calls + excluded.calls,
        input_tokens = totals.input_tokens + excluded.input_tokens,
        output_tokens = totals.output_tokens + excluded.output_tokens,
        cache_read_tokens = totals.cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = totals.cache_write_tokens + excluded.cache_write_tokens,
        micro_usd = totals.micro_usd + excluded.micro_usd,
        priced_calls = totals.priced_calls + excluded.priced_calls;
    DELETE FROM usage_totals AS totals
    WHERE sign < 0 AND totals.calls = 0 AND (totals.what, totals.key) IN (
        ('idea', for_idea), ('build', for_build), ('model', used.model), ('day', on_day::text)
    );
END
$$;

CREATE FUNCTION sum_up_calls() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF tg_op <> 'INSERT' THEN
        PERFORM change_usage(-1, old);
    END IF;
    IF tg_op <> 'DELETE' THEN
        PERFORM change_usage(1, new);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER model_calls_written AFTER INSERT OR UPDATE OR DELETE ON model_calls
FOR EACH ROW EXECUTE FUNCTION sum_up_calls();

-- The sums do not tell tasks apart: the budget of one reads its own calls.
DROP INDEX model_calls_by_build;
CREATE INDEX model_calls_by_build_task ON model_calls ("build", "task");

-- What was learned is listed by when it changed, the newest first.
CREATE INDEX knowledge_by_updated_at ON knowledge ("updated_at" DESC, key);
