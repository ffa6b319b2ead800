SELECT auction, bidder, price, channel, id, date_time
FROM (SELECT *, coalesce(
          list_position(['apple', 'google', 'facebook', 'baidu'], lower(channel)) - 1,
          try_cast(nullif(split_part(split_part(url, '&channel_id=', 2), '&', 1), '') AS BIGINT)
      )::VARCHAR AS id FROM bid)
WHERE id IS NOT NULL
