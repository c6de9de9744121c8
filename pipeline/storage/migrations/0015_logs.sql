-- Which logs were counted: the topics of a cluster by their ids, and the stream that their rows carry; and how
-- far a partition was read where its last messages left no rows.
--
-- Only new tables: workers of the version before go on as they were.

CREATE TABLE IF NOT EXISTS logs (
    cluster String,
    topic LowCardinality(String),
    broker_topic String,
    topic_id String,
    time DateTime64(3, 'UTC'),
    stream String,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (cluster, topic, broker_topic, topic_id);

CREATE TABLE IF NOT EXISTS positions (
    stream LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    time DateTime64(3, 'UTC'),
    last_offset Int64,
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree
ORDER BY (stream, topic, partition)
TTL inserted + INTERVAL 45 DAY;
