-- How near a change comes to the routes of a service's application, as JSON.
--
-- Only a column with a default: workers of the version before go on as they were.

ALTER TABLE changes ADD COLUMN IF NOT EXISTS routes String DEFAULT '';
