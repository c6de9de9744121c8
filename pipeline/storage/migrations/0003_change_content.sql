-- The text of a change's diff, for its words (FBDetect §5.4.9). Older workers insert without it.

ALTER TABLE changes ADD COLUMN IF NOT EXISTS content String;
