WITH hops AS (
    SELECT auction, to_timestamp((epoch_us(date_time) // 2000000 + k) * 2)::TIMESTAMP AS till
    FROM bid, range(1, 6) ks(k)
)
SELECT auction, count(*) AS bids, till FROM hops
GROUP BY auction, till
QUALIFY bids = max(bids) OVER (PARTITION BY till)
