"""Sources and sinks: rows that a server brings in from elsewhere, and results that it tells there.

    protocol.py     what a connector is: the one page that its author reads
    registry.py     the connectors that there are: of this room, and of others by entry points
    options.py      what WITH says, checked and read; secrets.py: what is not written there
    manager.py      those that are declared, as they come, change and go
    supervisor.py   one of them at work: begun, watched, begun anew; backoff.py: when
    source_life.py  from the other side into a stream, from where it stands
    sink_life.py    from a query to the other side, from where it stands; positions.py: where
    formats/        messages -> rows, rows -> messages, a file a format

and a file for each connector."""
