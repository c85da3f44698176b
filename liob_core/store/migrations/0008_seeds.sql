-- Prompts repeated over several seeds: how many were asked for, and what they say of each variant.

ALTER TABLE raw.runs ADD COLUMN n_seeds INTEGER;
ALTER TABLE raw.summary ADD COLUMN seed_pass_rate DOUBLE;
ALTER TABLE raw.summary ADD COLUMN seed_pass_rate_ci_low DOUBLE;
ALTER TABLE raw.summary ADD COLUMN seed_pass_rate_ci_high DOUBLE;

-- Written by analysis after each ingest, a whole run at a time, like raw.summary.
CREATE TABLE raw.seeds (
    run_id VARCHAR NOT NULL,
    variant VARCHAR NOT NULL,
    prompt_id VARCHAR NOT NULL,
    n_answers BIGINT,
    n_checked BIGINT,
    n_passed BIGINT,
    pass_share DOUBLE,
    pass_share_ci_low DOUBLE,
    pass_share_ci_high DOUBLE
);
