-- By which version of names a service is counted since when, and what each symbol stands for.
--
-- Only new tables: workers of the version before go on as they were.

CREATE TABLE IF NOT EXISTS naming (
    service LowCardinality(String),
    time DateTime64(3, 'UTC'),
    version String,
    before UInt8,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, time, version)
TTL inserted + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS symbols (
    service LowCardinality(String),
    symbol String,
    time DateTime64(3, 'UTC'),
    name String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, symbol)
TTL inserted + INTERVAL 90 DAY;
