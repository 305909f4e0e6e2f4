-- Format 2: permissions that last longer than one call, and sessions that are read page by page.

-- `what` is the hash of all that a grant says, `whose` that of where it counts: patterns and paths have any
-- length, and any characters.
CREATE TABLE grants (
    id      TEXT COLLATE "C" PRIMARY KEY,
    what    BYTEA NOT NULL UNIQUE,
    whose   BYTEA NOT NULL,
    session TEXT COLLATE "C" REFERENCES sessions (id) ON DELETE CASCADE,
    body    BYTEA NOT NULL,
    created DOUBLE PRECISION NOT NULL
);
CREATE INDEX grants_by_place ON grants (whose);
CREATE INDEX grants_by_session ON grants (session);

-- The revision with which the note or the link of a reference was last written anew, if that ever was: who
-- reads an earlier revision page by page notices that this page is not of it any more.
ALTER TABLE entries ADD COLUMN renewed BIGINT;

-- The number of the lease whose owner is delivering a message; it counts for as long as that lease does.
ALTER TABLE inputs ADD COLUMN taken BIGINT;

UPDATE format SET number = 2;
