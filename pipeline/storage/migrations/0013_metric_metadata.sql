-- What services say of their metrics, and between which windows a reported change lies.
--
-- A new table, and a column that is empty in rows of the version before.

CREATE TABLE IF NOT EXISTS metric_metadata (
    service LowCardinality(String),
    metric LowCardinality(String),
    time DateTime64(3, 'UTC'),
    unit String,
    kind String,
    direction String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (service, metric)
TTL inserted + INTERVAL 400 DAY;

ALTER TABLE memory ADD COLUMN IF NOT EXISTS change_time_interval Array(Float64) DEFAULT [];
