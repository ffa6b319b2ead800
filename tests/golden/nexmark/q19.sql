SELECT auction, bidder, price, channel, url, date_time, extra FROM bid
QUALIFY row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, n) <= 10
