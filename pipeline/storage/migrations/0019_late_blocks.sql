-- A block of counts is taken within 30 s of its sender's last look at how far the partition is counted: a worker
-- that stood still for longer may have lost it. ``inserted`` is the time of that look, by the store's clock.
--
-- Only constraints: workers of the version before leave ``inserted`` out, so to them it is now, and all is taken.

ALTER TABLE totals ADD CONSTRAINT IF NOT EXISTS in_time CHECK nowInBlock() <= inserted + INTERVAL 30 SECOND;

ALTER TABLE gcpu ADD CONSTRAINT IF NOT EXISTS in_time CHECK nowInBlock() <= inserted + INTERVAL 30 SECOND;

ALTER TABLE stacks ADD CONSTRAINT IF NOT EXISTS in_time CHECK nowInBlock() <= inserted + INTERVAL 30 SECOND;

ALTER TABLE strata_totals ADD CONSTRAINT IF NOT EXISTS in_time CHECK nowInBlock() <= inserted + INTERVAL 30 SECOND;

ALTER TABLE strata_gcpu ADD CONSTRAINT IF NOT EXISTS in_time CHECK nowInBlock() <= inserted + INTERVAL 30 SECOND;

ALTER TABLE metrics ADD CONSTRAINT IF NOT EXISTS in_time CHECK nowInBlock() <= inserted + INTERVAL 30 SECOND;
