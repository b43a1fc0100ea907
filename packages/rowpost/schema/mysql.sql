-- 1 local message table
CREATE TABLE IF NOT EXISTS `local_message` (
  id BIGINT NOT NULL AUTO_INCREMENT,
  message_type VARCHAR(64) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL COMMENT 'what happened, such as order.created',
  message_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL COMMENT 'business identity; unique with message_type',
  topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL COMMENT 'destination',
  message_body MEDIUMTEXT NOT NULL COMMENT 'JSON; or text; or base64 when content_type ends in ;base64',
  headers TEXT NULL COMMENT 'JSON object of strings',
  content_type VARCHAR(64) NULL COMMENT 'NULL = application/json',
  ordering_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NULL COMMENT 'messages with equal keys keep their order',
  state TINYINT NOT NULL DEFAULT 0 COMMENT '0 pending 1 sending 2 sent 3 failed 4 consumed 5 suspended',
  retry_count INT NOT NULL DEFAULT 0 COMMENT 'failed attempts',
  delivery_count INT NOT NULL DEFAULT 0 COMMENT 'times claimed by a relay',
  deliver_at DATETIME(3) NULL COMMENT 'not before this instant; never changed',
  next_retry_at DATETIME(3) NULL COMMENT 'when a relay looks at this row again; NULL in pending = now, elsewhere = never',
  last_retry_at DATETIME(3) NULL COMMENT 'start of the last attempt',
  fail_reason VARCHAR(1024) NULL COMMENT 'last error, or why it is suspended',
  message_id VARCHAR(255) NULL COMMENT 'receipt of the broker',
  lock_version BIGINT NOT NULL DEFAULT 0 COMMENT 'grows with every change',
  sent_at DATETIME(3) NULL,
  consumed_at DATETIME(3) NULL,
  created_by VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'system that wrote the message',
  updated_by VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'system or person that changed it last',
  gmt_create DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC',
  gmt_modified DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC',
  settle_pad VARCHAR(64) CHARACTER SET ascii NOT NULL DEFAULT '................................................................' COMMENT 'keeps the row from growing when it is sent; means nothing',
  PRIMARY KEY (id),
  UNIQUE KEY uk_type_key (message_type, message_key),
  KEY idx_state_next_retry (state, next_retry_at) COMMENT 'every scan of the relay',
  KEY idx_topic (topic),
  KEY idx_ordering_key_state (ordering_key, state) COMMENT 'order per key'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='local message table (transactional outbox)';

-- 2 tables of the relay
CREATE TABLE IF NOT EXISTS `local_message_shard` (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  shard SMALLINT NOT NULL,
  owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'random id of a relay since its start; NULL = free',
  epoch BIGINT NOT NULL DEFAULT 0 COMMENT 'grows with each owner',
  lease_until DATETIME(3) NOT NULL DEFAULT '1970-01-01 00:00:00.000' COMMENT 'UTC',
  lease_ms INT NOT NULL DEFAULT 0,
  in_flight MEDIUMTEXT NULL COMMENT 'ids being published by a relay that sets no sending mark',
  PRIMARY KEY (table_name, shard)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='who may relay which messages';
CREATE TABLE IF NOT EXISTS `local_message_relay` (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  label VARCHAR(255) NOT NULL COMMENT 'host:pid',
  seen_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (table_name, owner)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='running relays';
CREATE TABLE IF NOT EXISTS `local_message_suspension` (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  scope VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'ordering_key, topic, type or relay',
  value VARCHAR(255) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL COMMENT 'the key, topic or type; * for relay',
  reason VARCHAR(512) NOT NULL,
  author VARCHAR(64) NOT NULL,
  ends_at DATETIME(3) NULL COMMENT 'UTC; NULL = until it is lifted',
  gmt_create DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC',
  PRIMARY KEY (table_name, scope, value)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='what must not be sent for now';

-- 3 archive
CREATE TABLE IF NOT EXISTS `local_message_archive` (
  id BIGINT NOT NULL COMMENT 'as it was in the message table',
  message_type VARCHAR(64) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL COMMENT 'what happened, such as order.created',
  message_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL COMMENT 'business identity; unique with message_type',
  topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL COMMENT 'destination',
  message_body MEDIUMTEXT NOT NULL COMMENT 'JSON; or text; or base64 when content_type ends in ;base64',
  headers TEXT NULL COMMENT 'JSON object of strings',
  content_type VARCHAR(64) NULL COMMENT 'NULL = application/json',
  ordering_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NULL COMMENT 'messages with equal keys keep their order',
  state TINYINT NOT NULL DEFAULT 0 COMMENT '0 pending 1 sending 2 sent 3 failed 4 consumed 5 suspended',
  retry_count INT NOT NULL DEFAULT 0 COMMENT 'failed attempts',
  delivery_count INT NOT NULL DEFAULT 0 COMMENT 'times claimed by a relay',
  deliver_at DATETIME(3) NULL COMMENT 'not before this instant; never changed',
  next_retry_at DATETIME(3) NULL COMMENT 'when a relay looks at this row again; NULL in pending = now, elsewhere = never',
  last_retry_at DATETIME(3) NULL COMMENT 'start of the last attempt',
  fail_reason VARCHAR(1024) NULL COMMENT 'last error, or why it is suspended',
  message_id VARCHAR(255) NULL COMMENT 'receipt of the broker',
  lock_version BIGINT NOT NULL DEFAULT 0 COMMENT 'grows with every change',
  sent_at DATETIME(3) NULL,
  consumed_at DATETIME(3) NULL,
  created_by VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'system that wrote the message',
  updated_by VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'system or person that changed it last',
  gmt_create DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC',
  gmt_modified DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC',
  archived_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (id),
  KEY idx_type_key (message_type, message_key),
  KEY idx_archived_at (archived_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='finished messages';

-- 4 unfinished rows by topic and key
ALTER TABLE `local_message`
  ADD COLUMN waiting_topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ GENERATED ALWAYS AS (IF(state = 0, topic, NULL)) STORED COMMENT 'the topic of a pending row',
  ADD COLUMN open_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ GENERATED ALWAYS AS (IF(state IN (0, 1, 5, 3), ordering_key, NULL)) STORED COMMENT 'the ordering key of an unfinished row';
ALTER TABLE `local_message`
  ADD KEY idx_waiting_topic (waiting_topic, next_retry_at) COMMENT 'scans of some topics',
  ADD KEY idx_open_key (open_key) COMMENT 'order per key',
  DROP KEY idx_topic, DROP KEY idx_ordering_key_state;

-- 5 archive takes an id again
ALTER TABLE `local_message_archive` DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, archived_at);

-- 6 reports of relays, and what people did
ALTER TABLE `local_message_relay`
  ADD COLUMN report MEDIUMTEXT CHARACTER SET utf8mb4 NULL COMMENT 'JSON: what the relay says of itself',
  ADD COLUMN reported_at DATETIME(3) NULL COMMENT 'UTC';
CREATE TABLE IF NOT EXISTS `local_message_audit` (
  id BIGINT NOT NULL AUTO_INCREMENT,
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  made_at DATETIME(3) NOT NULL COMMENT 'UTC',
  author VARCHAR(64) NOT NULL COMMENT 'who',
  action VARCHAR(32) CHARACTER SET ascii NOT NULL COMMENT 'retry, suspend, resume, archive, delete, …',
  reason VARCHAR(1024) NOT NULL COMMENT 'why, in their own words',
  changed INT NOT NULL COMMENT 'messages',
  first_id BIGINT NULL COMMENT 'lowest id that was changed',
  last_id BIGINT NULL,
  ids MEDIUMTEXT NULL COMMENT 'JSON: the ids that were changed',
  details MEDIUMTEXT NULL COMMENT 'JSON: a rule, a topic, …',
  PRIMARY KEY (id),
  KEY idx_message (table_name, last_id, first_id) COMMENT 'what was done to a message',
  KEY idx_made_at (made_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='what people did by hand';

-- 7 who has confirmed
CREATE TABLE IF NOT EXISTS `local_message_confirmation` (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  message BIGINT NOT NULL COMMENT 'id of the message',
  consumer VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
  confirmed_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (table_name, message, consumer),
  KEY idx_confirmed_at (table_name, confirmed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='which consumer has confirmed which message';

-- 8 sessions of the console, and more of what people did
ALTER TABLE `local_message_audit`
  ADD COLUMN via VARCHAR(16) CHARACTER SET ascii NULL COMMENT 'cli, console, api',
  ADD COLUMN result VARCHAR(16) CHARACTER SET ascii NOT NULL DEFAULT 'done' COMMENT 'done, conflict, denied',
  ADD COLUMN before_image MEDIUMTEXT CHARACTER SET utf8mb4 NULL COMMENT 'JSON: the messages as they were before';
CREATE TABLE IF NOT EXISTS `local_message_session` (
  hash CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'SHA-256 of what the browser has',
  holder TEXT NOT NULL COMMENT 'JSON: who it is, and what they may do',
  seen_at DATETIME(3) NOT NULL COMMENT 'UTC',
  ends_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (hash)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='who is logged in to the console';

-- 9 confirmations of unknown messages
CREATE TABLE IF NOT EXISTS `local_message_unmatched` (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  message_type VARCHAR(64) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
  message_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
  consumer VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL COMMENT 'empty: it gave no name',
  reason VARCHAR(1024) CHARACTER SET utf8mb4 NULL COMMENT 'why it could not be handled; NULL = it was consumed',
  times BIGINT NOT NULL COMMENT 'how often this was said',
  first_at DATETIME(3) NOT NULL COMMENT 'UTC',
  last_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (table_name, message_type, message_key, consumer),
  KEY idx_last_at (table_name, last_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='confirmations of messages that are not there';

-- 11 alerts
CREATE TABLE IF NOT EXISTS `local_message_alert` (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'random id of who evaluates; NULL = nobody',
  lease_until DATETIME(3) NULL COMMENT 'UTC',
  state MEDIUMTEXT CHARACTER SET utf8mb4 NULL COMMENT 'JSON: what is wrong since when, and what was told',
  saved_at DATETIME(3) NULL COMMENT 'UTC',
  PRIMARY KEY (table_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='alerts: who evaluates them, and what was told';
CREATE TABLE IF NOT EXISTS `local_message_silence` (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  rule_name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'NULL = every rule',
  subject VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'topic, type or broker; NULL = all',
  author VARCHAR(64) CHARACTER SET utf8mb4 NOT NULL,
  reason VARCHAR(1024) CHARACTER SET utf8mb4 NOT NULL,
  created_at DATETIME(3) NOT NULL COMMENT 'UTC',
  ends_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (id),
  KEY idx_created_at (table_name, created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC COMMENT='silenced alerts';

-- 12 versions begin anywhere
ALTER TABLE `local_message` ALTER COLUMN lock_version SET DEFAULT (MICROSECOND(UTC_TIMESTAMP(6)));
