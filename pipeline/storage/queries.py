"""Queries of ClickHouse; every value is a parameter, bound by the server."""

from __future__ import annotations

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

# Of gCPU all series between two names of a kind are read, or a chosen few. Pairs say exactly which, but by
# them alone every row of the service is read: the key of the table serves lists of kinds and of names.
GCPU_NAMES = {
    ("gcpu", "all"): """
SELECT toString(kind) AS kind_name, subroutine, cityHash64(kind, subroutine)
FROM gcpu
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
GROUP BY kind, subroutine
ORDER BY kind_name, subroutine
""",
    ("gcpu", "chosen"): """
SELECT toString(kind) AS kind_name, subroutine, cityHash64(kind, subroutine)
FROM gcpu
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND kind IN {kinds:Array(String)} AND subroutine IN {names:Array(String)}
    AND (kind, subroutine) IN arrayZip({kinds:Array(String)}, {names:Array(String)})
GROUP BY kind, subroutine
ORDER BY kind_name, subroutine
""",
    ("gcpu_rollup", "all"): """
SELECT toString(kind) AS kind_name, subroutine, cityHash64(kind, subroutine)
FROM gcpu_rollup
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND width_s = {width_s:Float64} AND kind != ''
    AND (toUnixTimestamp64Milli(window) - {start:Int64}) % {resolution:Int64} = 0
GROUP BY kind, subroutine
ORDER BY kind_name, subroutine
""",
    ("gcpu_rollup", "chosen"): """
SELECT toString(kind) AS kind_name, subroutine, cityHash64(kind, subroutine)
FROM gcpu_rollup
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND width_s = {width_s:Float64} AND kind != ''
    AND (toUnixTimestamp64Milli(window) - {start:Int64}) % {resolution:Int64} = 0
    AND kind IN {kinds:Array(String)} AND subroutine IN {names:Array(String)}
    AND (kind, subroutine) IN arrayZip({kinds:Array(String)}, {names:Array(String)})
GROUP BY kind, subroutine
ORDER BY kind_name, subroutine
""",
}

# The names travel once each, not once a window: counts and names meet again through a 64-bit hash.
GCPU_COUNTS = {
    ("gcpu", "all"): """
SELECT
    cityHash64(kind, subroutine) AS series,
    toUInt32(intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64})) AS place,
    toFloat64(sum(samples)) AS count
FROM gcpu
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND kind = {kind:String} AND subroutine >= {first:String}
    AND ({beyond:String} = '' OR subroutine < {beyond:String})
GROUP BY series, place
""",
    ("gcpu", "chosen"): """
SELECT
    cityHash64(kind, subroutine) AS series,
    toUInt32(intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64})) AS place,
    toFloat64(sum(samples)) AS count
FROM gcpu
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND kind IN {kinds:Array(String)} AND subroutine IN {names:Array(String)}
    AND (kind, subroutine) IN arrayZip({kinds:Array(String)}, {names:Array(String)})
GROUP BY series, place
""",
    ("gcpu_rollup", "all"): """
SELECT
    cityHash64(kind, subroutine) AS series,
    toUInt32(intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64})) AS place,
    toFloat64(samples) AS count,
    total
FROM gcpu_rollup
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND width_s = {width_s:Float64} AND kind != ''
    AND (toUnixTimestamp64Milli(window) - {start:Int64}) % {resolution:Int64} = 0
    AND kind = {kind:String} AND subroutine >= {first:String}
    AND ({beyond:String} = '' OR subroutine < {beyond:String})
""",
    ("gcpu_rollup", "chosen"): """
SELECT
    cityHash64(kind, subroutine) AS series,
    toUInt32(intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64})) AS place,
    toFloat64(samples) AS count,
    total
FROM gcpu_rollup
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND width_s = {width_s:Float64} AND kind != ''
    AND (toUnixTimestamp64Milli(window) - {start:Int64}) % {resolution:Int64} = 0
    AND kind IN {kinds:Array(String)} AND subroutine IN {names:Array(String)}
    AND (kind, subroutine) IN arrayZip({kinds:Array(String)}, {names:Array(String)})
""",
}

# Rows live a little longer than what says that they are whole.
ROLLED_UP = """
SELECT
    toUInt32(intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64})) AS place,
    toFloat64(total) AS count
FROM gcpu_rollup
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND width_s = {width_s:Float64} AND kind = '' AND inserted > now() - INTERVAL 40 DAY
    AND (toUnixTimestamp64Milli(window) - {start:Int64}) % {resolution:Int64} = 0
"""

ROLL_UP = """
INSERT INTO gcpu_rollup (service, width_s, kind, subroutine, window, total, samples)
SELECT
    service,
    {width_s:Float64},
    kind,
    subroutine,
    fromUnixTimestamp64Milli({start:Int64} + toInt64(place) * {resolution:Int64}, 'UTC') AS at,
    {totals:Array(UInt64)}[place + 1],
    sum(samples)
FROM (
SELECT
    service,
    kind,
    subroutine,
    samples,
    toUInt32(intDiv(toUnixTimestamp64Milli(window) - {start:Int64}, {resolution:Int64})) AS place
FROM gcpu
WHERE service = {service:String}
    AND window >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND kind = {kind:String} AND subroutine >= {first:String}
    AND ({beyond:String} = '' OR subroutine < {beyond:String})
)
GROUP BY service, kind, subroutine, place
"""

ROLL_UP_WHOLE = """
INSERT INTO gcpu_rollup (service, width_s, kind, subroutine, window, total, samples)
SELECT
    {service:String},
    {width_s:Float64},
    '',
    '',
    fromUnixTimestamp64Milli({start:Int64} + toInt64(number) * {resolution:Int64}, 'UTC'),
    {totals:Array(UInt64)}[number + 1],
    0
FROM numbers(length({totals:Array(UInt64)}))
"""

METRIC_COUNTS = """
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
"""
METRIC_NAMES = """
SELECT 'service', toString(metric) AS metric_name, cityHash64('service', metric)
FROM metrics
WHERE service = {service:String} AND setup = {setup:UInt8}
    AND time >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')
    AND time < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
    AND ({every:UInt8} OR metric IN {names:Array(String)})
GROUP BY metric
ORDER BY metric_name
"""

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

# Frames are those of the same time: what has a row here has one in ``stacks``, which is written before it.
STRATA_STACKS = """
WITH
    toUnixTimestamp64Milli(window) AS first,
    first + toInt64(round(width_s * 1000)) AS last,
    first >= {before_start:Int64} AND last <= {before_end:Int64}
        AND stratum IN {strata_before:Array(UInt64)} AS in_before,
    first >= {after_start:Int64} AND last <= {after_end:Int64}
        AND stratum IN {strata_after:Array(UInt64)} AS in_after
SELECT
    CAST(known.frames, 'Array(LowCardinality(String))') AS labels,
    counted.before,
    counted.after
FROM (
    SELECT
        stack_id,
        toFloat64(sumIf(samples, in_before)) AS before,
        toFloat64(sumIf(samples, in_after)) AS after
    FROM strata_stacks
    WHERE service = {service:String}
        AND window >= fromUnixTimestamp64Milli(least({before_start:Int64}, {after_start:Int64}), 'UTC')
        AND window < fromUnixTimestamp64Milli(greatest({before_end:Int64}, {after_end:Int64}), 'UTC')
        AND (in_before OR in_after)
    GROUP BY stack_id
) AS counted
LEFT JOIN (
    SELECT stack_id, any(stacks.frames) AS frames
    FROM stacks
    WHERE service = {service:String}
        AND window >= fromUnixTimestamp64Milli(least({before_start:Int64}, {after_start:Int64}), 'UTC')
        AND window < fromUnixTimestamp64Milli(greatest({before_end:Int64}, {after_end:Int64}), 'UTC')
    GROUP BY stack_id
) AS known ON known.stack_id = counted.stack_id
ORDER BY counted.stack_id
"""

# Of all counts by stratum, which share their windows.
STRATA_WIDTH = """
SELECT width_s
FROM strata_gcpu
WHERE service = {service:String} AND window < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
ORDER BY window DESC
LIMIT 1
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
