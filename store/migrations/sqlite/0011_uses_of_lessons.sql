-- What came of each use of a lesson is drawn beside it.
CREATE INDEX injections_by_item_at ON injections ("item", "at");
