-- The code of each decision and what it names; the sentence stays for readers of the version before.

ALTER TABLE ledger ADD COLUMN IF NOT EXISTS code LowCardinality(String) DEFAULT '';
ALTER TABLE ledger ADD COLUMN IF NOT EXISTS subjects Array(String) DEFAULT [];
