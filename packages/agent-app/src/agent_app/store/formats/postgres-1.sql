-- Format 1, in a schema of its own. Names are compared by their bytes, whatever the database's language is.

CREATE TABLE content (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE,
    body BYTEA NOT NULL,
    searched INTEGER NOT NULL DEFAULT 0
);

-- A list of references. A fork's list begins with the first `base` entries of its parent's.
CREATE TABLE lists (
    id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent BIGINT REFERENCES lists (id),
    base   BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX lists_by_parent ON lists (parent);

CREATE TABLE entries (
    list    BIGINT NOT NULL REFERENCES lists (id),
    seq     BIGINT NOT NULL,
    content BIGINT NOT NULL REFERENCES content (id),
    note    BYTEA,
    link    BYTEA,
    PRIMARY KEY (list, seq)
);
CREATE INDEX entries_by_content ON entries (content, list, seq);

CREATE TABLE sessions (
    id        TEXT COLLATE "C" PRIMARY KEY,
    title     TEXT NOT NULL DEFAULT '',
    title_folded TEXT COLLATE "C" NOT NULL DEFAULT '',
    agent_id  TEXT,
    created   DOUBLE PRECISION NOT NULL,
    updated   DOUBLE PRECISION NOT NULL,
    revision  BIGINT NOT NULL DEFAULT 1,
    parent_id TEXT,
    messages  BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    natives   BIGINT NOT NULL,
    native_count  BIGINT NOT NULL,
    last_input BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_change ON sessions (updated DESC, id);
CREATE INDEX sessions_by_list ON sessions (messages);

-- The highest revision and lease number of all sessions that were deleted; new ones begin behind it.
CREATE TABLE past (highest BIGINT NOT NULL);
INSERT INTO past VALUES (0);

CREATE TABLE metadata (
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    key_hash BYTEA NOT NULL,
    content BIGINT NOT NULL REFERENCES content (id),
    PRIMARY KEY (session, key_hash)
);
CREATE INDEX metadata_by_content ON metadata (content);

CREATE TABLE leases (
    session TEXT COLLATE "C" PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    owner   TEXT NOT NULL,
    token   BIGINT NOT NULL,
    expires DOUBLE PRECISION NOT NULL
);

CREATE TABLE events (
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     BIGINT NOT NULL,
    body    BYTEA NOT NULL,
    PRIMARY KEY (session, seq)
);

CREATE TABLE inputs (
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     BIGINT NOT NULL,
    body    BYTEA NOT NULL,
    mode    TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session, seq)
);

CREATE TABLE approvals (
    id       TEXT COLLATE "C" PRIMARY KEY,
    session  TEXT COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    body     BYTEA NOT NULL,
    created  DOUBLE PRECISION NOT NULL,
    decision BYTEA,
    used     INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX approvals_by_session ON approvals (session);

CREATE TABLE intents (
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call_hash BYTEA NOT NULL,
    body    BYTEA NOT NULL,
    PRIMARY KEY (session, call_hash)
);

-- The words of messages, by the id of their content; the text itself is in `content`.
CREATE TABLE words (
    content BIGINT PRIMARY KEY REFERENCES content (id) ON DELETE CASCADE,
    words   TSVECTOR NOT NULL
);
CREATE INDEX words_by_word ON words USING GIN (words);

CREATE TABLE format (number INTEGER NOT NULL);
INSERT INTO format VALUES (1);
