SELECT auction, bidder, (price * 908)::DECIMAL(38, 3) / 1000,
    CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime'
         WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime'
         ELSE 'otherTime' END,
    date_time, extra, len(list_filter(string_split(extra, ''), lambda x: x = 'c')), date_time
FROM bid WHERE price * 908 > 1000000000 AND price * 908 < 50000000000
