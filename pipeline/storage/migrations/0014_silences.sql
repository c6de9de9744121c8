-- What people said beforehand of regressions, and the regressions that were not reported for it.
--
-- Only new tables, and a column with a default: workers of the version before go on as they were.

ALTER TABLE changes ADD COLUMN IF NOT EXISTS expected String DEFAULT '';

CREATE TABLE IF NOT EXISTS silences (
    id String,
    service LowCardinality(String),
    kind LowCardinality(String),
    time DateTime64(3, 'UTC'),
    start_time DateTime64(3, 'UTC'),
    end_time DateTime64(3, 'UTC'),
    owner String,
    subroutine String,
    cost Float64,
    change String,
    reason String,
    removed_time DateTime64(3, 'UTC'),
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, id)
TTL inserted + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS silenced (
    id String,
    service LowCardinality(String),
    workload LowCardinality(String),
    time DateTime64(3, 'UTC'),
    scan_end DateTime64(3, 'UTC'),
    state LowCardinality(String),
    silence String,
    size Float64,
    error Float64,
    event String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, id, scan_end)
TTL inserted + INTERVAL 400 DAY;
