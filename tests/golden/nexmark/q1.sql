SELECT auction, bidder, (price * 908)::DECIMAL(38, 3) / 1000, date_time, extra, date_time FROM bid
