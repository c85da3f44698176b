-- The memory-bandwidth ceiling: how fast memory was read before the run, what a token reads of it, and
-- what follows for each variant.

ALTER TABLE raw.runs ADD COLUMN read_bytes_per_s DOUBLE;
ALTER TABLE raw.runs ADD COLUMN read_threads INTEGER;
ALTER TABLE raw.runs ADD COLUMN cache_bytes BIGINT;
ALTER TABLE raw.runs ADD COLUMN read_reason VARCHAR;
ALTER TABLE raw.variants ADD COLUMN token_read_bytes BIGINT;
ALTER TABLE raw.summary ADD COLUMN ceiling_tps DOUBLE;
ALTER TABLE raw.summary ADD COLUMN roofline_share DOUBLE;
