"""The port that speaks PostgreSQL's protocol, version 3: whatever reads PostgreSQL reads dsms.

A session is one of the server's, with the same user, rights, limits, place in the queue of
statements and line in SHOW SESSIONS; only what is said on the wire is another language.

    door        asks for TLS, and the first bytes        codec     messages in and out
    session     a connection: who it is, its messages    extended  Parse, Bind, Execute
    statements  what a text asks for                     running   how it is done
    portals     answers that are given out in parts      rows      Arrow columns -> DataRow
    catalog     pg_catalog and information_schema        settings  SET, SHOW and their values
"""
