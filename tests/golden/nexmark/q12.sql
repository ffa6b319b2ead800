SELECT bidder, count(*), since, since + INTERVAL 10 SECOND, since + INTERVAL 10 SECOND
FROM (SELECT bidder, time_bucket(INTERVAL 10 SECOND, arrived, TIMESTAMP '1970-01-01') AS since FROM arrived_bid)
GROUP BY bidder, since
