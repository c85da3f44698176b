-- What a check measured, beside whether it passed.

ALTER TABLE raw.samples ADD COLUMN check_score DOUBLE;
