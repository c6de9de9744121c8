-- Trials before a release: what came of each side, its points, verdicts on experiments, and models that were
-- chosen. The digest of a message is in the identity, so that one that comes again changes nothing, and of
-- several of one side a reader takes the latest in whatever order they came.
--
-- Only new tables: workers of the version before go on as they were.

CREATE TABLE IF NOT EXISTS trials (
    service LowCardinality(String),
    experiment String,
    trial String,
    side LowCardinality(String),
    kind LowCardinality(String),
    time DateTime64(3, 'UTC'),
    release String,
    factors Array(String),
    expected UInt32,
    sequential UInt8,
    points UInt64,
    digest String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, experiment, trial, side, digest)
TTL inserted + INTERVAL 30 DAY;

CREATE TABLE IF NOT EXISTS trial_points (
    service LowCardinality(String),
    experiment String,
    trial String,
    side LowCardinality(String),
    kind LowCardinality(String),
    metric String,
    time DateTime64(3, 'UTC'),
    warm_up UInt64,
    threshold Float64,
    direction LowCardinality(String),
    points Array(Float64) CODEC(ZSTD(1)),
    digest String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, experiment, trial, side, metric, digest)
TTL inserted + INTERVAL 31 DAY;

CREATE TABLE IF NOT EXISTS trial_verdicts (
    id String,
    service LowCardinality(String),
    experiment String,
    time DateTime64(3, 'UTC'),
    revision UInt32,
    decision LowCardinality(String),
    state LowCardinality(String),
    event String CODEC(ZSTD(3)),
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, experiment, id, state)
TTL inserted + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS trial_models (
    service LowCardinality(String),
    metric String,
    time DateTime64(3, 'UTC'),
    trials UInt32,
    threshold Float64,
    alpha Float64,
    model LowCardinality(String),
    former LowCardinality(String),
    experiments UInt32,
    scores String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, metric, trials, threshold, alpha, time)
TTL inserted + INTERVAL 400 DAY;
