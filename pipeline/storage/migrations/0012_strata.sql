-- Who sent samples: totals and counts of subroutines by stratum, and what each stratum is.
--
-- Only new tables: workers of the version before go on as they were, and count nothing by stratum.

CREATE TABLE IF NOT EXISTS strata_totals (
    service LowCardinality(String),
    stratum UInt64,
    window DateTime64(3, 'UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    stream LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    last_offset SimpleAggregateFunction(max, Int64),
    inserted SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now(),
    PROJECTION counted (SELECT stream, topic, partition, max(last_offset) GROUP BY stream, topic, partition)
) ENGINE = AggregatingMergeTree
ORDER BY (service, window, stratum, stream, topic, partition)
TTL inserted + INTERVAL 45 DAY
SETTINGS non_replicated_deduplication_window = 10000, deduplicate_merge_projection_mode = 'rebuild';

CREATE TABLE IF NOT EXISTS strata_gcpu (
    service LowCardinality(String),
    kind LowCardinality(String),
    subroutine String,
    stratum UInt64,
    window DateTime64(3, 'UTC'),
    width_s SimpleAggregateFunction(max, Float64),
    samples SimpleAggregateFunction(sum, UInt64),
    stream LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    last_offset SimpleAggregateFunction(max, Int64),
    inserted SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now(),
    PROJECTION counted (SELECT stream, topic, partition, max(last_offset) GROUP BY stream, topic, partition)
) ENGINE = AggregatingMergeTree
ORDER BY (service, window, kind, subroutine, stratum, stream, topic, partition)
TTL inserted + INTERVAL 45 DAY
SETTINGS non_replicated_deduplication_window = 10000, deduplicate_merge_projection_mode = 'rebuild';

CREATE TABLE IF NOT EXISTS strata (
    service LowCardinality(String),
    stratum String,
    time DateTime64(3, 'UTC'),
    host String,
    release String,
    labels Array(String),
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, stratum)
TTL inserted + INTERVAL 90 DAY;
