-- 1 local message table
CREATE TABLE IF NOT EXISTS local_message (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message_type TEXT NOT NULL,
  message_key TEXT NOT NULL,
  topic TEXT NOT NULL,
  message_body TEXT NOT NULL,
  headers TEXT,
  content_type TEXT,
  ordering_key TEXT,
  state INTEGER NOT NULL DEFAULT 0,
  retry_count INTEGER NOT NULL DEFAULT 0,
  delivery_count INTEGER NOT NULL DEFAULT 0,
  deliver_at TEXT,
  next_retry_at TEXT,
  last_retry_at TEXT,
  fail_reason TEXT,
  message_id TEXT,
  lock_version INTEGER NOT NULL DEFAULT 0,
  sent_at TEXT,
  consumed_at TEXT,
  created_by TEXT NOT NULL DEFAULT '',
  updated_by TEXT NOT NULL DEFAULT '',
  gmt_create TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  gmt_modified TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  UNIQUE (message_type, message_key)
);
CREATE INDEX IF NOT EXISTS local_message_state ON local_message (state, next_retry_at);
CREATE INDEX IF NOT EXISTS local_message_topic ON local_message (topic);
CREATE INDEX IF NOT EXISTS local_message_unknown ON local_message (state) WHERE state NOT IN (0, 1, 2, 3, 4, 5);
CREATE INDEX IF NOT EXISTS local_message_ordered ON local_message (ordering_key) WHERE ordering_key IS NOT NULL;

-- 2 tables of the relay
CREATE TABLE IF NOT EXISTS local_message_shard (
  table_name TEXT NOT NULL,
  shard INTEGER NOT NULL,
  owner TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  lease_until TEXT NOT NULL DEFAULT '1970-01-01 00:00:00.000',
  lease_ms INTEGER NOT NULL DEFAULT 0,
  in_flight TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (table_name, shard)
);
CREATE TABLE IF NOT EXISTS local_message_relay (
  table_name TEXT NOT NULL,
  owner TEXT NOT NULL,
  label TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  PRIMARY KEY (table_name, owner)
);
CREATE TABLE IF NOT EXISTS local_message_suspension (
  table_name TEXT NOT NULL,
  scope TEXT NOT NULL,
  value TEXT NOT NULL,
  reason TEXT NOT NULL,
  author TEXT NOT NULL,
  ends_at TEXT,
  gmt_create TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  PRIMARY KEY (table_name, scope, value)
);

-- 3 archive
CREATE TABLE IF NOT EXISTS local_message_archive (
  id INTEGER PRIMARY KEY,
  message_type TEXT,
  message_key TEXT,
  topic TEXT,
  message_body TEXT,
  headers TEXT,
  content_type TEXT,
  ordering_key TEXT,
  state INTEGER DEFAULT 0,
  retry_count INTEGER DEFAULT 0,
  delivery_count INTEGER DEFAULT 0,
  deliver_at TEXT,
  next_retry_at TEXT,
  last_retry_at TEXT,
  fail_reason TEXT,
  message_id TEXT,
  lock_version INTEGER DEFAULT 0,
  sent_at TEXT,
  consumed_at TEXT,
  created_by TEXT DEFAULT '',
  updated_by TEXT DEFAULT '',
  gmt_create TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  gmt_modified TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  archived_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS local_message_archive_key ON local_message_archive (message_type, message_key);
CREATE INDEX IF NOT EXISTS local_message_archive_at ON local_message_archive (archived_at);

-- 4 waiting rows by topic
CREATE INDEX IF NOT EXISTS local_message_waiting_topic ON local_message (topic, next_retry_at) WHERE state = 0;

-- 5 archive takes an id again
CREATE TABLE local_message_archive_new (
  id INTEGER NOT NULL,
  message_type TEXT,
  message_key TEXT,
  topic TEXT,
  message_body TEXT,
  headers TEXT,
  content_type TEXT,
  ordering_key TEXT,
  state INTEGER DEFAULT 0,
  retry_count INTEGER DEFAULT 0,
  delivery_count INTEGER DEFAULT 0,
  deliver_at TEXT,
  next_retry_at TEXT,
  last_retry_at TEXT,
  fail_reason TEXT,
  message_id TEXT,
  lock_version INTEGER DEFAULT 0,
  sent_at TEXT,
  consumed_at TEXT,
  created_by TEXT DEFAULT '',
  updated_by TEXT DEFAULT '',
  gmt_create TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  gmt_modified TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  archived_at TEXT NOT NULL,
  PRIMARY KEY (id, archived_at)
);
INSERT INTO local_message_archive_new (id, message_type, message_key, topic, message_body, state, retry_count, next_retry_at, fail_reason, gmt_create, gmt_modified, last_retry_at, headers, content_type, ordering_key, delivery_count, deliver_at, message_id, lock_version, sent_at, consumed_at, created_by, updated_by, archived_at) SELECT id, message_type, message_key, topic, message_body, state, retry_count, next_retry_at, fail_reason, gmt_create, gmt_modified, last_retry_at, headers, content_type, ordering_key, delivery_count, deliver_at, message_id, lock_version, sent_at, consumed_at, created_by, updated_by, archived_at FROM local_message_archive;
DROP TABLE local_message_archive;
ALTER TABLE local_message_archive_new RENAME TO local_message_archive;
CREATE INDEX IF NOT EXISTS local_message_archive_key ON local_message_archive (message_type, message_key);
CREATE INDEX IF NOT EXISTS local_message_archive_at ON local_message_archive (archived_at);

-- 6 reports of relays, and what people did
ALTER TABLE local_message_relay ADD COLUMN report TEXT;
ALTER TABLE local_message_relay ADD COLUMN reported_at TEXT;
CREATE TABLE IF NOT EXISTS local_message_audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  table_name TEXT NOT NULL,
  made_at TEXT NOT NULL,
  author TEXT NOT NULL,
  action TEXT NOT NULL,
  reason TEXT NOT NULL,
  changed INTEGER NOT NULL,
  first_id INTEGER,
  last_id INTEGER,
  ids TEXT,
  details TEXT
);
CREATE INDEX IF NOT EXISTS local_message_audit_message ON local_message_audit (table_name, last_id, first_id);
CREATE INDEX IF NOT EXISTS local_message_audit_made ON local_message_audit (made_at);

-- 7 who has confirmed
CREATE TABLE IF NOT EXISTS local_message_confirmation (
  table_name TEXT NOT NULL,
  message INTEGER NOT NULL,
  consumer TEXT NOT NULL,
  confirmed_at TEXT NOT NULL,
  PRIMARY KEY (table_name, message, consumer)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS local_message_confirmation_at ON local_message_confirmation (table_name, confirmed_at);

-- 8 sessions of the console, and more of what people did
ALTER TABLE local_message_audit ADD COLUMN via TEXT;
ALTER TABLE local_message_audit ADD COLUMN result TEXT NOT NULL DEFAULT 'done';
ALTER TABLE local_message_audit ADD COLUMN before_image TEXT;
CREATE TABLE IF NOT EXISTS local_message_session (
  hash TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  ends_at TEXT NOT NULL
) WITHOUT ROWID;

-- 9 confirmations of unknown messages
CREATE TABLE IF NOT EXISTS local_message_unmatched (
  table_name TEXT NOT NULL,
  message_type TEXT NOT NULL,
  message_key TEXT NOT NULL,
  consumer TEXT NOT NULL,
  reason TEXT,
  times INTEGER NOT NULL,
  first_at TEXT NOT NULL,
  last_at TEXT NOT NULL,
  PRIMARY KEY (table_name, message_type, message_key, consumer)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS local_message_unmatched_at ON local_message_unmatched (table_name, last_at);

-- 11 alerts
CREATE TABLE IF NOT EXISTS local_message_alert (
  table_name TEXT PRIMARY KEY,
  owner TEXT,
  lease_until TEXT,
  state TEXT,
  saved_at TEXT
);
CREATE TABLE IF NOT EXISTS local_message_silence (
  id TEXT PRIMARY KEY,
  table_name TEXT NOT NULL,
  rule_name TEXT,
  subject TEXT,
  author TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_at TEXT NOT NULL,
  ends_at TEXT NOT NULL
);
