-- What cost domains said of each candidate, as JSON. Workers of the version before leave the column out.

ALTER TABLE ledger ADD COLUMN IF NOT EXISTS domains String DEFAULT '';
