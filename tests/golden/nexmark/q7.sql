SELECT auction, bidder, price, date_time, extra,
    time_bucket(INTERVAL 10 SECOND, date_time, TIMESTAMP '1970-01-01') + INTERVAL 10 SECOND AS till
FROM bid
QUALIFY price = max(price) OVER (PARTITION BY till)
