-- What counts against a service's quota, and what was refused or first seen.
--
-- The columns are additive like samples and stored in the same block, so that a worker that resumes knows
-- exactly what the log had brought up to its offset. Workers of the version before leave them out.

ALTER TABLE totals ADD COLUMN IF NOT EXISTS messages SimpleAggregateFunction(sum, UInt64) DEFAULT 0;
ALTER TABLE totals ADD COLUMN IF NOT EXISTS stacks SimpleAggregateFunction(sum, UInt64) DEFAULT 0;
ALTER TABLE totals ADD COLUMN IF NOT EXISTS refused_messages SimpleAggregateFunction(sum, UInt64) DEFAULT 0;
ALTER TABLE totals ADD COLUMN IF NOT EXISTS refused_samples SimpleAggregateFunction(sum, UInt64) DEFAULT 0;

CREATE TABLE IF NOT EXISTS names (
    log LowCardinality(String),
    service LowCardinality(String),
    time DateTime64(3, 'UTC'),
    first Int64,
    hashes Array(UInt64),
    offsets Array(Int64),
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (log, time, service, first)
TTL inserted + INTERVAL 7 DAY;
