SELECT bidder, price, channel, url, bid.extra, person.id, name, email_address, credit_card, city, state,
    person.extra, item_name, description, initial_bid, reserve, auction.date_time, expires, seller, category,
    auction.extra, greatest(bid.date_time, person.date_time, auction.date_time)
FROM person JOIN auction ON seller = person.id JOIN bid ON bidder = seller
