-- A search finds other forms of a word too, by the stems that SQLite takes, and leaves out no word as too frequent.
CREATE TEXT SEARCH DICTIONARY porter_stems (TEMPLATE = pg_catalog.snowball, LANGUAGE = porter);

CREATE TEXT SEARCH CONFIGURATION stems (COPY = pg_catalog.simple);

ALTER TEXT SEARCH CONFIGURATION stems
ALTER MAPPING FOR asciiword, word, numword WITH porter_stems;

CREATE OR REPLACE FUNCTION read_knowledge() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    said TEXT;
BEGIN
    BEGIN
        said := concat_ws(' ', new.body::json ->> 'content', new.body::json ->> 'topics');
    EXCEPTION WHEN untranslatable_character THEN
        -- A zero byte is the one letter that a text cannot hold.
        said := new.body;
    END;
    new.words := to_tsvector('stems', plain_words(said));
    RETURN new;
END
$$;

-- Each row is read again by the trigger.
UPDATE knowledge SET version = version;
