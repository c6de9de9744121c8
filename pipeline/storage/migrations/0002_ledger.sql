-- What became of every candidate, and of every regression that was reported.
--
-- Only new tables: workers of the version before go on as they were, whichever comes first.
--
-- A scan that is repeated with late samples in it may estimate other times and levels, so that only what
-- makes an id (service, workload, scan, series) may stand in the sorting keys.

CREATE TABLE IF NOT EXISTS updates (
    id String,
    type LowCardinality(String),
    regression String,
    service LowCardinality(String),
    workload LowCardinality(String),
    metric_kind LowCardinality(String),
    metric String,
    time DateTime64(3, 'UTC'),
    before Float64,
    after Float64,
    level Float64,
    share_remaining Float64,
    event String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, time, id)
TTL inserted + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS ledger (
    id String,
    service LowCardinality(String),
    workload LowCardinality(String),
    time DateTime64(3, 'UTC'),
    scan_start DateTime64(3, 'UTC'),
    analysis_start DateTime64(3, 'UTC'),
    analysis_end DateTime64(3, 'UTC'),
    metric_kind LowCardinality(String),
    metric String,
    kind LowCardinality(String),
    change_time DateTime64(3, 'UTC'),
    before Float64,
    after Float64,
    p_value Float64,
    statistic Float64,
    step LowCardinality(String),
    value Float64,
    bound Float64,
    reason String,
    passed String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, time, id)
TTL inserted + INTERVAL 30 DAY;
