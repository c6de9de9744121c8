-- Requests by release, type and period, of all hosts together, with statuses by class and a sketch of response
-- times: counts by logarithmic bucket, which add up.
--
-- Only a new table: workers of the version before go on as they were, and count no requests.

CREATE TABLE IF NOT EXISTS requests (
    service LowCardinality(String),
    release LowCardinality(String),
    type String,
    window DateTime64(3, 'UTC'),
    width_s Float64,
    requests SimpleAggregateFunction(sum, UInt64),
    responses_1xx SimpleAggregateFunction(sum, UInt64),
    responses_2xx SimpleAggregateFunction(sum, UInt64),
    responses_3xx SimpleAggregateFunction(sum, UInt64),
    responses_4xx SimpleAggregateFunction(sum, UInt64),
    responses_5xx SimpleAggregateFunction(sum, UInt64),
    times SimpleAggregateFunction(sumMap, Map(Int16, UInt64)),
    stream LowCardinality(String),
    topic LowCardinality(String),
    partition UInt32,
    last_offset SimpleAggregateFunction(max, Int64),
    inserted SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now(),
    PROJECTION counted (SELECT stream, topic, partition, max(last_offset) GROUP BY stream, topic, partition),
    CONSTRAINT in_time CHECK nowInBlock() <= inserted + INTERVAL 30 SECOND
) ENGINE = AggregatingMergeTree
ORDER BY (service, window, release, type, width_s, stream, topic, partition)
TTL inserted + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000, deduplicate_merge_projection_mode = 'rebuild';
