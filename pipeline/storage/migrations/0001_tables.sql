-- The public tables; docs/tables.md describes them for people who query them.
--
-- Counted tables (totals, gcpu, stacks, metrics): each row says up to which offset of which partition of
-- which log its block was counted. One INSERT must stay one part to be atomic, hence no PARTITION BY, and
-- a repeated INSERT is recognised by its token, hence the deduplication window. The projection answers
-- "what was counted last?" without reading the counts.
--
-- Rows live by the time they arrived, not by the time they speak of, so that old data can be replayed.

CREATE TABLE IF NOT EXISTS totals (
    service LowCardinality(String),
    window DateTime64(3, 'UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    stream LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    last_offset SimpleAggregateFunction(max, Int64),
    inserted SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now(),
    PROJECTION counted (SELECT stream, topic, partition, max(last_offset) GROUP BY stream, topic, partition)
) ENGINE = AggregatingMergeTree
ORDER BY (service, window, stream, topic, partition)
TTL inserted + INTERVAL 45 DAY
SETTINGS non_replicated_deduplication_window = 10000, deduplicate_merge_projection_mode = 'rebuild';

CREATE TABLE IF NOT EXISTS gcpu (
    service LowCardinality(String),
    kind LowCardinality(String),
    subroutine String,
    window DateTime64(3, 'UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    stream LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    last_offset SimpleAggregateFunction(max, Int64),
    inserted SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now(),
    PROJECTION counted (SELECT stream, topic, partition, max(last_offset) GROUP BY stream, topic, partition)
) ENGINE = AggregatingMergeTree
ORDER BY (service, kind, subroutine, window, stream, topic, partition)
TTL inserted + INTERVAL 45 DAY
SETTINGS non_replicated_deduplication_window = 10000, deduplicate_merge_projection_mode = 'rebuild';

-- Read by span of time only, and its frames are long: so the window comes before the stack.
CREATE TABLE IF NOT EXISTS stacks (
    service LowCardinality(String),
    stack_id UInt64,
    frames SimpleAggregateFunction(any, Array(String)),
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
ORDER BY (service, window, stack_id, stream, topic, partition)
TTL inserted + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000, deduplicate_merge_projection_mode = 'rebuild';

CREATE TABLE IF NOT EXISTS metrics (
    service LowCardinality(String),
    metric LowCardinality(String),
    setup UInt8,
    time DateTime64(3, 'UTC'),
    value Float64,
    stream LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    last_offset Int64,
    inserted DateTime('UTC') DEFAULT now(),
    PROJECTION counted (SELECT stream, topic, partition, max(last_offset) GROUP BY stream, topic, partition)
) ENGINE = MergeTree
ORDER BY (service, metric, time)
TTL inserted + INTERVAL 45 DAY
SETTINGS non_replicated_deduplication_window = 10000;

-- Tables of things with an identity: a later row replaces an earlier one.

CREATE TABLE IF NOT EXISTS changes (
    id String,
    service LowCardinality(String),
    time DateTime64(3, 'UTC'),
    title String,
    author String,
    summary String,
    files Array(String),
    subroutines Array(String),
    gates Array(String),
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, id, time)
TTL inserted + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS regressions (
    id String,
    service LowCardinality(String),
    workload LowCardinality(String),
    metric_kind LowCardinality(String),
    metric String,
    time DateTime64(3, 'UTC'),
    detected_time DateTime64(3, 'UTC'),
    before Float64,
    after Float64,
    delta Float64,
    p_value Float64,
    event String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, id)
TTL inserted + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS scans (
    service LowCardinality(String),
    workload LowCardinality(String),
    time DateTime64(3, 'UTC'),
    series UInt32,
    candidates UInt32,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, workload, time)
TTL inserted + INTERVAL 45 DAY;

CREATE TABLE IF NOT EXISTS memory (
    stage LowCardinality(String),
    service LowCardinality(String),
    workload LowCardinality(String),
    metric_kind LowCardinality(String),
    metric String,
    kind LowCardinality(String),
    time DateTime64(3, 'UTC'),
    before Float64,
    after Float64,
    scan_end DateTime64(3, 'UTC'),
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, stage, workload, metric_kind, metric, kind, scan_end)
TTL inserted + INTERVAL 90 DAY;
