-- Energy of each shape's requests, one row a window and scope, and what it says of each variant.

CREATE TABLE raw.energy (
    run_id VARCHAR NOT NULL,
    load_id VARCHAR,
    variant VARCHAR NOT NULL,
    block INTEGER NOT NULL,
    shape VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    started_utc TIMESTAMP,
    window_s DOUBLE,
    n_requests BIGINT,
    output_tokens BIGINT,
    energy_j DOUBLE,
    idle_before_w DOUBLE,
    idle_after_w DOUBLE,
    contended BOOLEAN,
    reason VARCHAR,
    PRIMARY KEY (run_id, variant, block, shape, scope)
);

ALTER TABLE raw.summary ADD COLUMN j_per_output_token DOUBLE;
ALTER TABLE raw.summary ADD COLUMN j_per_output_token_ci_low DOUBLE;
ALTER TABLE raw.summary ADD COLUMN j_per_output_token_ci_high DOUBLE;
ALTER TABLE raw.summary ADD COLUMN net_j_per_output_token DOUBLE;
ALTER TABLE raw.summary ADD COLUMN energy_scope VARCHAR;
ALTER TABLE raw.summary ADD COLUMN energy_source VARCHAR;
ALTER TABLE raw.summary ADD COLUMN energy_n_blocks BIGINT;
