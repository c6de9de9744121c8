-- What each stage made of each scan, so that a scan that comes again has the outcome of its first time.
--
-- Only a new table: workers of the version before go on as they were. Of rows of one identity the first stays,
-- which is what "any" keeps. Rows outlive the messages of the topics between the stages (7 days).

CREATE TABLE IF NOT EXISTS outcomes (
    service LowCardinality(String),
    stage LowCardinality(String),
    workload LowCardinality(String),
    time DateTime64(3, 'UTC'),
    attempt String,
    number UInt32,
    kind SimpleAggregateFunction(any, LowCardinality(String)),
    name SimpleAggregateFunction(any, String),
    headers SimpleAggregateFunction(any, String),
    content SimpleAggregateFunction(any, String) CODEC(ZSTD(3)),
    inserted SimpleAggregateFunction(min, DateTime('UTC')) DEFAULT now()
) ENGINE = AggregatingMergeTree
ORDER BY (service, stage, workload, time, attempt, number)
TTL inserted + INTERVAL 10 DAY
SETTINGS non_replicated_deduplication_window = 10000;
