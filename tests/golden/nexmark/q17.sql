WITH levels AS (
    SELECT *, date_time::DATE::VARCHAR AS day,
        CASE WHEN price < 10000 THEN 1 WHEN price < 1000000 THEN 2 ELSE 3 END AS level
    FROM bid
)
SELECT auction, day, count(*), count_if(level = 1), count_if(level = 2), count_if(level = 3),
    min(price), max(price), avg(price), sum(price)
FROM levels GROUP BY auction, day
