-- Format 5: one order of the events of all sessions, so that a reader can follow the whole application. A row is
-- an event of a session's log, by its number there, or one that belongs to no session and has its body here.

CREATE TABLE feed (
    position BIGINT PRIMARY KEY,
    session  TEXT COLLATE "C" REFERENCES sessions (id) ON DELETE CASCADE,
    seq      BIGINT,
    body     BYTEA
);
CREATE INDEX feed_by_session ON feed (session);

-- Positions begin with the number of their transaction. A database that was restored on another server counts its
-- transactions anew: what is added to them here keeps new positions above those that are there.
CREATE TABLE feed_start (added BIGINT NOT NULL);
INSERT INTO feed_start VALUES (0);

-- The branches of a session.
CREATE INDEX sessions_by_parent ON sessions (parent_id);

UPDATE format SET number = 5;
