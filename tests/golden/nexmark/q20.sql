SELECT bid.* EXCLUDE (n), item_name, description, initial_bid, reserve, auction.date_time, expires, seller,
    category, auction.extra, greatest(bid.date_time, auction.date_time)
FROM auction, bid WHERE id = auction AND category = 10
