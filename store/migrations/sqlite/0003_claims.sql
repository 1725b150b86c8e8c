-- Who handles an open delivery, and until when, where several processes share the subscribers of a database.
ALTER TABLE deliveries ADD COLUMN claimed_by TEXT;
ALTER TABLE deliveries ADD COLUMN claimed_until INTEGER;
