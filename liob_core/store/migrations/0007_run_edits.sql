-- What a person said about a run. A table of its own: raw.runs is written anew at each ingest.

CREATE TABLE raw.run_edits (
    run_id VARCHAR PRIMARY KEY,
    title VARCHAR,
    note VARCHAR,
    deleted_utc TIMESTAMP,
    edited_utc TIMESTAMP NOT NULL
);
