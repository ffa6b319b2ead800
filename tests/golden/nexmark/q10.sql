SELECT auction, bidder, price, date_time, extra,
    left(date_time::VARCHAR, 10), substr(date_time::VARCHAR, 12, 5), date_time
FROM bid
