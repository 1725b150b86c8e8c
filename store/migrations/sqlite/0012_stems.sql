-- A search finds other forms of a word too: all that is known is read again, by the stems of its words.
DROP TABLE knowledge_text;

CREATE VIRTUAL TABLE knowledge_text USING fts5 (content, topics, tokenize = 'porter unicode61 remove_diacritics 2');

INSERT INTO knowledge_text (rowid, content, topics)
SELECT number, body ->> '$.content', body ->> '$.topics' FROM knowledge;
