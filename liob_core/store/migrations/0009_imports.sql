-- Where a run comes from, and what was left out of it before it came here.

ALTER TABLE raw.runs ADD COLUMN kind VARCHAR;

ALTER TABLE raw.runs ADD COLUMN left_out VARCHAR;
