-- The board and the list of builds show the newest first, and whatever of each is not decided yet.
CREATE INDEX ideas_by_created_at ON ideas ("created_at" DESC, key);
CREATE INDEX builds_by_created_at ON builds ("created_at" DESC, key);
CREATE INDEX specifications_by_state ON specifications ("state");
