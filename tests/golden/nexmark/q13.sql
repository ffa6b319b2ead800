SELECT auction, bidder, price, date_time, value, date_time
FROM bid, side_input WHERE auction % 10000 = key
