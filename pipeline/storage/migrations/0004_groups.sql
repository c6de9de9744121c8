-- Which event each remembered regression belongs to, so that later scans know the group it is in.
--
-- Workers of the version before leave the column out: what they remember is a group of its own.

ALTER TABLE memory ADD COLUMN IF NOT EXISTS regression String DEFAULT '';
