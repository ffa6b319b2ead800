SELECT DISTINCT person.id, name, since, since + INTERVAL 10 SECOND
FROM (SELECT *, time_bucket(INTERVAL 10 SECOND, date_time, TIMESTAMP '1970-01-01') AS since FROM person) person
JOIN auction ON person.id = seller
    AND auction.date_time >= since AND auction.date_time < since + INTERVAL 10 SECOND
