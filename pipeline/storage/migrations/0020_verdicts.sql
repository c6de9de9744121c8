-- What people say of events. Of an event, an author and an aspect the row with the latest time stays, so that
-- messages that are read once more change nothing.
--
-- Only a new table: workers of the version before go on as they were.

CREATE TABLE IF NOT EXISTS verdicts (
    event String,
    service LowCardinality(String),
    verdict LowCardinality(String),
    aspect LowCardinality(String),
    time DateTime64(3, 'UTC'),
    author String,
    comment String,
    subject String,
    end_time DateTime64(3, 'UTC'),
    inserted DateTime('UTC') DEFAULT now()
) ENGINE = ReplacingMergeTree(time)
ORDER BY (service, event, author, aspect)
TTL inserted + INTERVAL 400 DAY;
