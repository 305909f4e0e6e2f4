-- Format 7: whose a session is, where several share a store. What was there before belongs to the default tenant,
-- whose name is empty. Columns that a checksum covers cannot be added to a table, so the tables are made anew.

CREATE TABLE sessions_7 (
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
    tenant    TEXT NOT NULL DEFAULT '',
    checksum INTEGER GENERATED ALWAYS AS (
        row_sum(id, title, title_folded, agent_id, created, updated, revision, parent_id, messages,
            message_count, natives, native_count, last_input, tenant)
    ) STORED
);
INSERT INTO sessions_7 (id, title, title_folded, agent_id, created, updated, revision, parent_id, messages,
        message_count, natives, native_count, last_input)
    SELECT id, title, title_folded, agent_id, created, updated, revision, parent_id, messages,
        message_count, natives, native_count, last_input FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_7 RENAME TO sessions;
CREATE INDEX sessions_by_change ON sessions (updated DESC, id);
CREATE INDEX sessions_by_list ON sessions (messages);
CREATE INDEX sessions_by_native_list ON sessions (natives);
CREATE INDEX sessions_by_parent ON sessions (parent_id);
CREATE INDEX sessions_by_tenant ON sessions (tenant, updated DESC, id);

CREATE TABLE grants_7 (
    id      TEXT PRIMARY KEY,
    what    BLOB NOT NULL UNIQUE,
    whose   BLOB NOT NULL,
    session TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    body    BLOB NOT NULL,
    created REAL NOT NULL,
    tenant  TEXT NOT NULL DEFAULT '',
    checksum INTEGER GENERATED ALWAYS AS (row_sum(id, what, whose, session, body, created, tenant)) STORED
) WITHOUT ROWID;
INSERT INTO grants_7 (id, what, whose, session, body, created)
    SELECT id, what, whose, session, body, created FROM grants;
DROP TABLE grants;
ALTER TABLE grants_7 RENAME TO grants;
CREATE INDEX grants_by_place ON grants (whose);
CREATE INDEX grants_by_session ON grants (session);

CREATE TABLE feed_7 (
    position INTEGER PRIMARY KEY,
    session  TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    seq      INTEGER,
    body     BLOB,
    tenant   TEXT NOT NULL DEFAULT '',
    checksum INTEGER GENERATED ALWAYS AS (row_sum(position, session, seq, body, tenant)) STORED
);
INSERT INTO feed_7 (position, session, seq, body) SELECT position, session, seq, body FROM feed;
DROP TABLE feed;
ALTER TABLE feed_7 RENAME TO feed;
CREATE INDEX feed_by_session ON feed (session);
CREATE INDEX feed_by_tenant ON feed (tenant, position);
