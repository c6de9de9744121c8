-- Counts of series in the windows of scans: one row per series and window, however many partitions and minutes.
--
-- Derived from gcpu, so nothing is lost with it. A row holds for as long as totals has the same number of
-- samples in its window as when it was made: counts only add, so another number says that samples came late. The
-- row without a kind comes last of a window, and says that all of them are there.
--
-- Only a new table: workers of the version before read gcpu as they did.

CREATE TABLE IF NOT EXISTS gcpu_rollup (
    service LowCardinality(String),
    width_s Float64,
    kind LowCardinality(String),
    subroutine String,
    window DateTime64(3, 'UTC') CODEC(DoubleDelta, LZ4),
    total UInt64,
    samples SimpleAggregateFunction(max, UInt64),
    inserted SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
) ENGINE = AggregatingMergeTree
ORDER BY (service, width_s, kind, subroutine, window, total)
TTL inserted + INTERVAL 45 DAY;
