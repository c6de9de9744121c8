-- What scans could not judge, and why. Only a new table: workers of the version before go on as they were.

CREATE TABLE IF NOT EXISTS unjudged (
    service LowCardinality(String),
    workload LowCardinality(String),
    time DateTime64(3, 'UTC'),
    code LowCardinality(String),
    series UInt32,
    value Float64,
    bound Float64,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, workload, time, code)
TTL inserted + INTERVAL 45 DAY;
