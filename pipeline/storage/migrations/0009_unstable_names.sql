-- How many names of a scan were seen for one process's life only. Workers of the version before leave it out.

ALTER TABLE scans ADD COLUMN IF NOT EXISTS unstable_names UInt32 DEFAULT 0;
