CREATE TABLE message_table (
  id BIGINT PRIMARY KEY AUTO_INCREMENT,
  gmt_create DATETIME NOT NULL,
  gmt_modified DATETIME NOT NULL,
  message_key VARCHAR(128) NOT NULL,
  message_id VARCHAR(128) DEFAULT NULL,
  message_type VARCHAR(64) NOT NULL,
  topic VARCHAR(64) NOT NULL,
  message_body TEXT NOT NULL,
  state VARCHAR(32) NOT NULL,
  retry_count INT DEFAULT 0,
  next_retry_at DATETIME DEFAULT NULL,
  last_retry_time DATETIME DEFAULT NULL,
  fail_reason TEXT DEFAULT NULL,
  lock_version BIGINT DEFAULT 0,
  UNIQUE KEY uniq_key_type (message_key, message_type),
  INDEX idx_state_retry (state, next_retry_at)
);
