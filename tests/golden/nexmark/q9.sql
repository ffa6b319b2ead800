SELECT id, item_name, description, initial_bid, reserve, auction.date_time, expires, seller, category,
    auction.extra, auction, bidder, price, bid.date_time, bid.extra
FROM auction JOIN bid ON auction = id AND bid.date_time BETWEEN auction.date_time AND expires
QUALIFY row_number() OVER (PARTITION BY id ORDER BY price DESC, bid.date_time, bid.n) = 1
