SELECT name, city, state, auction.id, greatest(auction.date_time, person.date_time)
FROM person, auction
WHERE seller = person.id AND category = 10 AND (state = 'OR' OR state = 'ID' OR state = 'CA')
