WITH winning AS (
    SELECT id, seller, price, bid.date_time AS won_at
    FROM auction JOIN bid ON auction = id AND bid.date_time BETWEEN auction.date_time AND expires
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY price DESC, bid.date_time, bid.n) = 1
), latest AS (
    SELECT seller, price FROM winning
    QUALIFY row_number() OVER (PARTITION BY seller ORDER BY won_at DESC, id DESC) <= 10
)
SELECT seller, avg(price) FROM latest GROUP BY seller
