WITH steps AS (
    SELECT *, date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time, n) AS pause FROM bid
), numbered AS (
    SELECT *, sum(CASE WHEN pause < INTERVAL 10 SECOND THEN 0 ELSE 1 END)
        OVER (PARTITION BY bidder ORDER BY date_time, n ROWS UNBOUNDED PRECEDING) AS session
    FROM steps
)
SELECT bidder, count(*), min(date_time), max(date_time) + INTERVAL 10 SECOND, max(date_time) + INTERVAL 10 SECOND
FROM numbered GROUP BY bidder, session
