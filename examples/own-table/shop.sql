-- What the shop has had for years.
CREATE TABLE orders (
  id TEXT PRIMARY KEY,
  amount INTEGER NOT NULL
);

CREATE TABLE app_event (
  event_id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  ref TEXT NOT NULL,
  channel TEXT NOT NULL,
  payload TEXT NOT NULL,
  status TEXT NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  next_try TEXT,
  error TEXT,
  receipt TEXT,
  version INTEGER NOT NULL DEFAULT 0,
  created TEXT NOT NULL,
  changed TEXT NOT NULL,
  UNIQUE (kind, ref)
);

CREATE INDEX app_event_status ON app_event (status, next_try);

-- The only thing that is new: the relay asks for it at its start, in a warning with this statement.
CREATE INDEX app_event_waiting_topic ON app_event (channel, next_try) WHERE status = 'new';
