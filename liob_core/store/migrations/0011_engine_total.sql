-- The engine's own whole time of a request, the part it accounts for nowhere included; and the Hub
-- repository and commit that a variant's file came from.

ALTER TABLE raw.samples ADD COLUMN engine_total_ms DOUBLE;
ALTER TABLE raw.variants ADD COLUMN hub_repo VARCHAR;
ALTER TABLE raw.variants ADD COLUMN hub_commit VARCHAR;
