-- Format 7: whose a session is, where several share a store. What was there before belongs to the default tenant,
-- whose name is empty.

ALTER TABLE sessions ADD COLUMN tenant TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX sessions_by_tenant ON sessions (tenant, updated DESC, id);
ALTER TABLE grants ADD COLUMN tenant TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE feed ADD COLUMN tenant TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX feed_by_tenant ON feed (tenant, position);

-- A transaction that works for one tenant says so by the setting `agent_store.tenant`: "t:" and the name. It then
-- neither reads nor writes rows of others, whatever its statements say. Without the setting, as for workers, all
-- rows are there. Superusers and roles with BYPASSRLS are not bound by policies: do not serve several tenants as one.

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON sessions USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') IN ('', 't:' || tenant)
);

ALTER TABLE grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE grants FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON grants USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') IN ('', 't:' || tenant)
);

ALTER TABLE feed ENABLE ROW LEVEL SECURITY;
ALTER TABLE feed FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON feed USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') IN ('', 't:' || tenant)
);

ALTER TABLE metadata ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON metadata USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') = ''
    OR EXISTS (SELECT 1 FROM sessions s WHERE s.id = metadata.session)
);

ALTER TABLE leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE leases FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON leases USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') = ''
    OR EXISTS (SELECT 1 FROM sessions s WHERE s.id = leases.session)
);

ALTER TABLE events ENABLE ROW LEVEL SECURITY;
ALTER TABLE events FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON events USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') = ''
    OR EXISTS (SELECT 1 FROM sessions s WHERE s.id = events.session)
);

ALTER TABLE inputs ENABLE ROW LEVEL SECURITY;
ALTER TABLE inputs FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON inputs USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') = ''
    OR EXISTS (SELECT 1 FROM sessions s WHERE s.id = inputs.session)
);

ALTER TABLE approvals ENABLE ROW LEVEL SECURITY;
ALTER TABLE approvals FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON approvals USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') = ''
    OR EXISTS (SELECT 1 FROM sessions s WHERE s.id = approvals.session)
);

ALTER TABLE intents ENABLE ROW LEVEL SECURITY;
ALTER TABLE intents FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON intents USING (
    coalesce((SELECT current_setting('agent_store.tenant', true)), '') = ''
    OR EXISTS (SELECT 1 FROM sessions s WHERE s.id = intents.session)
);

UPDATE format SET number = 7;
