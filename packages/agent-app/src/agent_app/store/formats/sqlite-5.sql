-- Format 5: one order of the events of all sessions, so that a reader can follow the whole application. A row is
-- an event of a session's log, by its number there, or one that belongs to no session and has its body here.

CREATE TABLE feed (
    position INTEGER PRIMARY KEY,
    session  TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    seq      INTEGER,
    body     BLOB,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(position, session, seq, body)) STORED
);
CREATE INDEX feed_by_session ON feed (session);

-- The branches of a session.
CREATE INDEX sessions_by_parent ON sessions (parent_id);
