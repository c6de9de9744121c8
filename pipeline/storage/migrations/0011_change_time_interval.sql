-- Between which windows a change lies; empty in rows of the version before.

ALTER TABLE ledger ADD COLUMN IF NOT EXISTS change_time_interval Array(Float64) DEFAULT [];
