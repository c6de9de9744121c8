"""What is asked of ClickHouse; every value is a parameter, bound by the server."""

from __future__ import annotations

# Of all services the projection of the tables answers it, which has no times.
EXTENTS = {
    "all": """
SELECT topic, partition, max(last_offset), 0
FROM {table:Identifier}
WHERE stream = {stream:String}
GROUP BY topic, partition
""",
    "service": """
SELECT topic, partition, max(last_offset), max(toUnixTimestamp64Milli({time:Identifier}))
FROM {table:Identifier}
WHERE stream = {stream:String} AND service = {service:String}
GROUP BY topic, partition
""",
}

USAGE = """
SELECT
    toString(service),
    intDiv(toUnixTimestamp64Milli(window), {period:Int64}) AS place,
    sum(totals.messages) AS counted,
    sum(totals.stacks)
FROM totals
WHERE service IN {services:Array(String)}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND stream = {stream:String} AND topic = {topic:String} AND partition = {partition:UInt32}
GROUP BY service, place
HAVING counted > 0
"""

TOTALS = """
SELECT
    intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64}) AS place,
    toFloat64(sum(samples)) AS count
FROM totals
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
GROUP BY place
"""

# The names travel once each, not once a window: counts and names meet again through a 64-bit hash.
COUNTS = {
    "gcpu": """
SELECT
    cityHash64(kind, subroutine) AS series,
    intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64}) AS place,
    toFloat64(sum(samples)) AS count
FROM gcpu
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND ({every:UInt8} OR (kind, subroutine) IN arrayZip({kinds:Array(String)}, {names:Array(String)}))
GROUP BY series, place
""",
    "metrics": """
SELECT
    cityHash64('service', metric) AS series,
    intDiv(toUnixTimestamp64Milli(time) - {start:Int64}, {resolution:Int64}) AS place,
    avg(value) AS count
FROM metrics
WHERE service = {service:String} AND setup = {setup:UInt8}
    AND time >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND time < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND ({every:UInt8} OR metric IN {names:Array(String)})
GROUP BY series, place
""",
}
NAMES = {
    "gcpu": """
SELECT toString(kind) AS kind_name, subroutine, cityHash64(kind, subroutine)
FROM gcpu
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND ({every:UInt8} OR (kind, subroutine) IN arrayZip({kinds:Array(String)}, {names:Array(String)}))
GROUP BY kind, subroutine
ORDER BY kind_name, subroutine
""",
    "metrics": """
SELECT 'service', toString(metric) AS metric_name, cityHash64('service', metric)
FROM metrics
WHERE service = {service:String} AND setup = {setup:UInt8}
    AND time >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND time < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND ({every:UInt8} OR metric IN {names:Array(String)})
GROUP BY metric
ORDER BY metric_name
""",
}

STRATA_TOTALS = """
SELECT
    stratum AS series,
    intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64}) AS place,
    toFloat64(sum(samples)) AS count
FROM strata_totals
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
GROUP BY series, place
"""

# Of all series each stratum's counts are one array, so that names travel once.
STRATA_COUNTS = """
SELECT
    toString(kind) AS kind_name,
    subroutine,
    groupArray(stratum) AS strata,
    groupArray(count) AS counts
FROM (
    SELECT
        kind, subroutine, stratum, toFloat64(sum(samples)) AS count
    FROM strata_gcpu
    WHERE service = {service:String}
        AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
        AND toUnixTimestamp64Milli(window) + toInt64(round(width_s * 1000)) <= {end:Int64}
        AND ({every:UInt8} OR (kind, subroutine) IN arrayZip({kinds:Array(String)}, {names:Array(String)}))
    GROUP BY kind, subroutine, stratum
)
GROUP BY kind, subroutine
ORDER BY kind_name, subroutine
"""

STRATA_COUNTED = """
SELECT
    toFloat64(min(toUnixTimestamp64Milli(window))) AS first,
    toFloat64(max(toUnixTimestamp64Milli(window) + toInt64(round(width_s * 1000)))) AS last
FROM strata_gcpu
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND toUnixTimestamp64Milli(window) + toInt64(round(width_s * 1000)) <= {end:Int64}
"""

STACKS = """
WITH
    toUnixTimestamp64Milli(window) AS first,
    first + toInt64(round(width_s * 1000)) AS last,
    first >= {before_start:Int64} AND last <= {before_end:Int64} AS in_before,
    first >= {after_start:Int64} AND last <= {after_end:Int64} AS in_after
SELECT
    CAST(any(frames), 'Array(LowCardinality(String))') AS labels, -- each is sent once, and is one object
    toFloat64(sumIf(samples, in_before)),
    toFloat64(sumIf(samples, in_after))
FROM stacks
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli(least({before_start:Int64}, {after_start:Int64}), 'UTC')
    AND window < fromUnixTimestamp64Milli(greatest({before_end:Int64}, {after_end:Int64}), 'UTC')
    AND (in_before OR in_after)
GROUP BY stack_id
ORDER BY stack_id
"""

COUNT_SCANS = """
SELECT uniqExact(service, workload, time)
FROM scans
WHERE time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
    AND ({service:String} = '' OR service = {service:String})
    AND ({workload:String} = '' OR workload = {workload:String})
    AND (service, workload, time) NOT IN (
        SELECT service, workload, min(time) FROM scans GROUP BY service, workload
    )
"""

FORGET_OUTCOMES = """
ALTER TABLE outcomes DELETE
WHERE time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
    AND ({service:String} = '' OR service = {service:String})
    AND ({workload:String} = '' OR workload = {workload:String})
    AND (service, workload, time) NOT IN (
        SELECT service, workload, min(time) FROM scans GROUP BY service, workload
    )
SETTINGS mutations_sync = 2
"""

FORGET_SCANS = """
ALTER TABLE scans DELETE
WHERE time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
    AND ({service:String} = '' OR service = {service:String})
    AND ({workload:String} = '' OR workload = {workload:String})
    AND (service, workload, time) NOT IN (
        SELECT service, workload, min(time) FROM scans GROUP BY service, workload
    )
SETTINGS mutations_sync = 2
"""
