SELECT auction, bidder, price, date_time, extra, date_time FROM bid
