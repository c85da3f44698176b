-- Opinions on samples, and how the judges did on questions whose right answer is known.

CREATE TABLE raw.judgements (
    judgement_id VARCHAR PRIMARY KEY,
    run_id VARCHAR NOT NULL,
    sample_id VARCHAR NOT NULL,
    variant VARCHAR NOT NULL,
    prompt_id VARCHAR NOT NULL,
    judge VARCHAR NOT NULL,
    judge_key VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    score INTEGER,
    reason VARCHAR,
    raw_reply VARCHAR,
    attempts INTEGER,
    judged_utc TIMESTAMP,
    earlier_replies JSON,
    reference_sample_id VARCHAR,
    result VARCHAR,
    preferred_first VARCHAR,
    preferred_second VARCHAR,
    raw_reply_second VARCHAR,
    length_ratio DOUBLE,
    lengths_differ BOOLEAN,
    calibration_share DOUBLE,
    is_self BOOLEAN
);

CREATE TABLE raw.calibrations (
    calibration_id VARCHAR PRIMARY KEY,
    run_id VARCHAR NOT NULL,
    judge VARCHAR NOT NULL,
    judge_key VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    set_sha256 VARCHAR,
    item_id VARCHAR NOT NULL,
    item_kind VARCHAR NOT NULL,
    expected VARCHAR,
    got VARCHAR,
    is_right BOOLEAN NOT NULL,
    state VARCHAR NOT NULL,
    raw_reply VARCHAR,
    attempts INTEGER,
    judged_utc TIMESTAMP
);
