WITH levels AS (
    SELECT *, date_time::DATE::VARCHAR AS day,
        CASE WHEN price < 10000 THEN 1 WHEN price < 1000000 THEN 2 ELSE 3 END AS level
    FROM bid
)
SELECT day, count(*), count_if(level = 1), count_if(level = 2), count_if(level = 3),
    count(DISTINCT bidder),
    count(DISTINCT CASE level WHEN 1 THEN bidder END), count(DISTINCT CASE level WHEN 2 THEN bidder END),
    count(DISTINCT CASE level WHEN 3 THEN bidder END),
    count(DISTINCT auction),
    count(DISTINCT CASE level WHEN 1 THEN auction END), count(DISTINCT CASE level WHEN 2 THEN auction END),
    count(DISTINCT CASE level WHEN 3 THEN auction END)
FROM levels GROUP BY day
