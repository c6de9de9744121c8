-- What the cost of an expectation is a measure of: the service's CPU, as it always was, or a service-level metric.
--
-- Workers of the version before leave it out, and what they announce is of the CPU.

ALTER TABLE silences ADD COLUMN IF NOT EXISTS measure LowCardinality(String) DEFAULT 'cpu';
