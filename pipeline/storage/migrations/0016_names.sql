-- Rows of two owners of a partition that begin at one offset are two rows, and ids are known as long as counts are.
--
-- The column is new in the sorting key, so no part is written anew; it has no default, for ClickHouse would
-- not take it there. Workers of the version before leave it out, and it is 0.

ALTER TABLE names ADD COLUMN IF NOT EXISTS digest UInt64, MODIFY ORDER BY (log, time, service, first, digest);
ALTER TABLE names MODIFY TTL inserted + INTERVAL 45 DAY;
