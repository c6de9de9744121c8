-- Counts of stacks by who sent them, in the windows of strata_gcpu. Their frames are in stacks, by stack_id: so
-- rows go a day sooner than theirs.
--
-- Only a new table: workers of the version before go on as they were, and count no stacks by stratum.

CREATE TABLE IF NOT EXISTS strata_stacks (
    service LowCardinality(String),
    stratum UInt64,
    stack_id UInt64,
    window DateTime64(3, 'UTC'),
    width_s SimpleAggregateFunction(max, Float64),
    samples SimpleAggregateFunction(sum, UInt64),
    stream LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    last_offset SimpleAggregateFunction(max, Int64),
    inserted SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now(),
    PROJECTION counted (SELECT stream, topic, partition, max(last_offset) GROUP BY stream, topic, partition),
    CONSTRAINT in_time CHECK nowInBlock() <= inserted + INTERVAL 30 SECOND
) ENGINE = AggregatingMergeTree
ORDER BY (service, window, stratum, stack_id, stream, topic, partition)
TTL inserted + INTERVAL 29 DAY
SETTINGS non_replicated_deduplication_window = 10000, deduplicate_merge_projection_mode = 'rebuild';
