-- What was to be sent of events to which target, and what was sent: each state of a delivery is a row of its
-- own, so that none can undo a later one.
--
-- Only a new table: workers of the version before go on as they were.

CREATE TABLE IF NOT EXISTS alerts (
    id String,
    service LowCardinality(String),
    time DateTime64(3, 'UTC'),
    event String,
    regression String,
    target LowCardinality(String),
    manner LowCardinality(String),
    state LowCardinality(String),
    partition UInt32,
    due_time DateTime64(3, 'UTC'),
    changed_time DateTime64(3, 'UTC'),
    thread String,
    detail String,
    content String CODEC(ZSTD(3)),
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, id, state)
TTL inserted + INTERVAL 400 DAY;
