-- Format 4: each row carries a checksum of all that it says, by which a check finds out whether the disk still
-- has what was written. SQLite computes it with every write, by the function that `checksums` has. Content has
-- its hash already. Columns that SQLite computes cannot be added to a table, so the tables are made anew.

CREATE TABLE lists_4 (
    id     INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES lists (id),
    base   INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(id, parent, base)) STORED
);
INSERT INTO lists_4 (id, parent, base) SELECT id, parent, base FROM lists;
DROP TABLE lists;
ALTER TABLE lists_4 RENAME TO lists;
CREATE INDEX lists_by_parent ON lists (parent);

CREATE TABLE entries_4 (
    list    INTEGER NOT NULL REFERENCES lists (id),
    seq     INTEGER NOT NULL,
    content INTEGER NOT NULL REFERENCES content (id),
    note    BLOB,
    link    BLOB,
    renewed INTEGER,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(list, seq, content, note, link, renewed)) STORED,
    PRIMARY KEY (list, seq)
) WITHOUT ROWID;
INSERT INTO entries_4 (list, seq, content, note, link, renewed)
    SELECT list, seq, content, note, link, renewed FROM entries;
DROP TABLE entries;
ALTER TABLE entries_4 RENAME TO entries;
CREATE INDEX entries_by_content ON entries (content);

CREATE TABLE sessions_4 (
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
    last_input INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER GENERATED ALWAYS AS (
        row_sum(id, title, title_folded, agent_id, created, updated, revision, parent_id, messages,
            message_count, natives, native_count, last_input)
    ) STORED
);
INSERT INTO sessions_4 (id, title, title_folded, agent_id, created, updated, revision, parent_id, messages,
        message_count, natives, native_count, last_input)
    SELECT id, title, title_folded, agent_id, created, updated, revision, parent_id, messages,
        message_count, natives, native_count, last_input FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_4 RENAME TO sessions;
CREATE INDEX sessions_by_change ON sessions (updated DESC, id);
CREATE INDEX sessions_by_list ON sessions (messages);
CREATE INDEX sessions_by_native_list ON sessions (natives);

CREATE TABLE past_4 (
    highest INTEGER NOT NULL,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(highest)) STORED
);
INSERT INTO past_4 (highest) SELECT highest FROM past;
DROP TABLE past;
ALTER TABLE past_4 RENAME TO past;

CREATE TABLE metadata_4 (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    key_hash BLOB NOT NULL,
    content INTEGER NOT NULL REFERENCES content (id),
    checksum INTEGER GENERATED ALWAYS AS (row_sum(session, key_hash, content)) STORED,
    PRIMARY KEY (session, key_hash)
) WITHOUT ROWID;
INSERT INTO metadata_4 (session, key_hash, content) SELECT session, key_hash, content FROM metadata;
DROP TABLE metadata;
ALTER TABLE metadata_4 RENAME TO metadata;
CREATE INDEX metadata_by_content ON metadata (content);

CREATE TABLE leases_4 (
    session TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    owner   TEXT NOT NULL,
    token   INTEGER NOT NULL,
    expires REAL NOT NULL,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(session, owner, token, expires)) STORED
) WITHOUT ROWID;
INSERT INTO leases_4 (session, owner, token, expires) SELECT session, owner, token, expires FROM leases;
DROP TABLE leases;
ALTER TABLE leases_4 RENAME TO leases;

CREATE TABLE events_4 (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    body    BLOB NOT NULL,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(session, seq, body)) STORED,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
INSERT INTO events_4 (session, seq, body) SELECT session, seq, body FROM events;
DROP TABLE events;
ALTER TABLE events_4 RENAME TO events;

CREATE TABLE inputs_4 (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    body    BLOB NOT NULL,
    mode    TEXT NOT NULL,
    created REAL NOT NULL,
    taken   INTEGER,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(session, seq, body, mode, created, taken)) STORED,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
INSERT INTO inputs_4 (session, seq, body, mode, created, taken)
    SELECT session, seq, body, mode, created, taken FROM inputs;
DROP TABLE inputs;
ALTER TABLE inputs_4 RENAME TO inputs;

CREATE TABLE approvals_4 (
    id       TEXT PRIMARY KEY,
    session  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    body     BLOB NOT NULL,
    created  REAL NOT NULL,
    decision BLOB,
    used     INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(id, session, body, created, decision, used)) STORED
) WITHOUT ROWID;
INSERT INTO approvals_4 (id, session, body, created, decision, used)
    SELECT id, session, body, created, decision, used FROM approvals;
DROP TABLE approvals;
ALTER TABLE approvals_4 RENAME TO approvals;
CREATE INDEX approvals_by_session ON approvals (session);

CREATE TABLE intents_4 (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call_hash BLOB NOT NULL,
    body    BLOB NOT NULL,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(session, call_hash, body)) STORED,
    PRIMARY KEY (session, call_hash)
) WITHOUT ROWID;
INSERT INTO intents_4 (session, call_hash, body) SELECT session, call_hash, body FROM intents;
DROP TABLE intents;
ALTER TABLE intents_4 RENAME TO intents;

CREATE TABLE grants_4 (
    id      TEXT PRIMARY KEY,
    what    BLOB NOT NULL UNIQUE,
    whose   BLOB NOT NULL,
    session TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    body    BLOB NOT NULL,
    created REAL NOT NULL,
    checksum INTEGER GENERATED ALWAYS AS (row_sum(id, what, whose, session, body, created)) STORED
) WITHOUT ROWID;
INSERT INTO grants_4 (id, what, whose, session, body, created)
    SELECT id, what, whose, session, body, created FROM grants;
DROP TABLE grants;
ALTER TABLE grants_4 RENAME TO grants;
CREATE INDEX grants_by_place ON grants (whose);
CREATE INDEX grants_by_session ON grants (session);

-- Whether the newest changes are still in the write-ahead log alone: see `ahead`.
CREATE TABLE log (state INTEGER NOT NULL, missed REAL);
INSERT INTO log VALUES (2, NULL);
