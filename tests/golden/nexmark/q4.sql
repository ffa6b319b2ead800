SELECT category, avg(final)
FROM (SELECT any_value(category) AS category, max(price) AS final
      FROM bid, auction
      WHERE auction = id AND bid.date_time >= auction.date_time AND bid.date_time <= expires
      GROUP BY id)
GROUP BY category
