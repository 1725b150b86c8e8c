-- Who handles an open delivery, and until when, where several processes share the subscribers of a database.
ALTER TABLE deliveries ADD COLUMN claimed_by TEXT COLLATE "C";
ALTER TABLE deliveries ADD COLUMN claimed_until BIGINT;

-- Finds what an entity has open before a delivery.
CREATE INDEX deliveries_lane ON deliveries (subscriber, entity, sequence) WHERE state = 'open';
