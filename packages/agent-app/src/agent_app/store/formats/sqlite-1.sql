-- Format 1. `PRAGMA user_version` tells the format.

CREATE TABLE IF NOT EXISTS content (
    id   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    body BLOB NOT NULL,
    searched INTEGER NOT NULL DEFAULT 0
);

-- A list of references. A fork's list begins with the first `base` entries of its parent's.
CREATE TABLE IF NOT EXISTS lists (
    id     INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES lists (id),
    base   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS lists_by_parent ON lists (parent);

CREATE TABLE IF NOT EXISTS entries (
    list    INTEGER NOT NULL REFERENCES lists (id),
    seq     INTEGER NOT NULL,
    content INTEGER NOT NULL REFERENCES content (id),
    note    BLOB,
    link    BLOB,
    PRIMARY KEY (list, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_by_content ON entries (content);

CREATE TABLE IF NOT EXISTS sessions (
    id        TEXT PRIMARY KEY,
    title     TEXT NOT NULL DEFAULT '',
    title_folded TEXT NOT NULL DEFAULT '',
    agent_id  TEXT,
    created   REAL NOT NULL,
    updated   REAL NOT NULL,
    revision  INTEGER NOT NULL DEFAULT 1,
    parent_id TEXT,
    messages  INTEGER NOT NULL,
    message_count INTEGER NOT NULL,
    natives   INTEGER NOT NULL,
    native_count  INTEGER NOT NULL,
    last_input INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS sessions_by_change ON sessions (updated DESC, id);
CREATE INDEX IF NOT EXISTS sessions_by_list ON sessions (messages);
CREATE INDEX IF NOT EXISTS sessions_by_native_list ON sessions (natives);

-- The highest revision and lease number of all sessions that were deleted; new ones begin behind it.
CREATE TABLE IF NOT EXISTS past (highest INTEGER NOT NULL);
INSERT INTO past SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM past);

CREATE TABLE IF NOT EXISTS metadata (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    key_hash BLOB NOT NULL,
    content INTEGER NOT NULL REFERENCES content (id),
    PRIMARY KEY (session, key_hash)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS metadata_by_content ON metadata (content);

CREATE TABLE IF NOT EXISTS leases (
    session TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    owner   TEXT NOT NULL,
    token   INTEGER NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS events (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    body    BLOB NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS inputs (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    body    BLOB NOT NULL,
    mode    TEXT NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS approvals (
    id       TEXT PRIMARY KEY,
    session  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    body     BLOB NOT NULL,
    created  REAL NOT NULL,
    decision BLOB,
    used     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS approvals_by_session ON approvals (session);

CREATE TABLE IF NOT EXISTS intents (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call_hash BLOB NOT NULL,
    body    BLOB NOT NULL,
    PRIMARY KEY (session, call_hash)
) WITHOUT ROWID;

-- The words of messages, by the id of their content; the text itself is in `content`.
-- Beginnings of one and two letters are kept too: as a query is typed, they match the most.
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    text, content = '', tokenize = 'unicode61', prefix = '1 2'
);
