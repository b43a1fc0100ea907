-- Every statement of the default layout as the server gets it, in the order of a message's way.
-- Each stands under the comment of its builder, which says what it locks and what happens if we die
-- right after it. Made by tools/sql-as-it-runs.mjs; see src/databases/ for the builders and docs/
-- for the rules.
--
-- MySQL 8 and 9 and MariaDB get the same text: what stands in /*M! … */ is read by MariaDB alone,
-- in /*!80017 … */ by MySQL from that version on. The relay's sessions are READ COMMITTED; each
-- statement outside a transaction commits by itself.

-- =================================================================================================
-- Writing a message, in the user's transaction

-- insert
-- Multi-row VALUES. The first row's state precedes all user values and carries the session check
-- (see `checked`): about 16 us a statement on MariaDB 10.11 and 9 to 18 on MySQL, where a lone
-- INSERT takes 65 and 104. A sub-query of two rows was 1.5 to 2 times as slow.
INSERT INTO `local_message` (`state`, `message_type`, `message_key`, `topic`, `message_body`, `headers`, `content_type`, `ordering_key`, `created_by`, `updated_by`, `gmt_create`, `gmt_modified`)
  VALUES (CASE WHEN ROW_COUNT() = 0 THEN EXP(999) WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */
    WHEN NOT (FIND_IN_SET('STRICT_TRANS_TABLES', @@sql_mode) OR FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode)) THEN EXP(996) ELSE 0 END, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3));

-- seeIdentities
-- A consistent read without locks. In REPEATABLE READ on MySQL 8 and 9 an INSERT that fails on a
-- duplicate blocks all other INSERTs until its transaction ends, so ignored duplicates must not
-- reach it. Elsewhere a constant condition makes this read nothing: on MariaDB a failed INSERT
-- blocks only its neighbors, and a read view could fail the user's later statements
-- (innodb_snapshot_isolation); in SERIALIZABLE a plain read locks rows and gaps; in READ COMMITTED
-- nothing is blocked. Runs before the INSERT, so it checks the session itself.
SELECT m.`message_type` AS messagetype, m.`message_key` AS messagekey FROM `local_message` AS m
  WHERE CASE WHEN ROW_COUNT() = 0 THEN EXP(999) WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ ELSE TRUE END /*M! AND FALSE */ /*!80000 AND @@transaction_isolation = 'REPEATABLE-READ' */ AND ((m.`message_type` = ? AND m.`message_key` = ?));

-- readRoom
SELECT c.TABLE_SCHEMA AS databasename, c.COLUMN_NAME AS columnname, c.CHARACTER_MAXIMUM_LENGTH AS characters, c.CHARACTER_OCTET_LENGTH AS bytes,
    c.CHARACTER_SET_NAME AS charsetname, c.DATA_TYPE AS datatype
  FROM information_schema.COLUMNS AS c
  WHERE CASE WHEN FALSE THEN FALSE WHEN ROW_COUNT() = 0 THEN EXP(999) ELSE TRUE END AND c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = ?;

-- findIdentities
-- Locks the rows in share mode, which reads committed data even in an older REPEATABLE READ
-- transaction. One SELECT per identity locks its row only; OR read the whole index of a small table
-- for three rows, locked every gap, and blocked all enqueues. 1,000 identities take 45 ms. A
-- missing identity leaves a gap lock.
(SELECT m.`message_type` AS messagetype, m.`message_key` AS messagekey FROM `local_message` AS m WHERE CASE WHEN FALSE THEN FALSE WHEN ROW_COUNT() = 0 THEN EXP(999) ELSE TRUE END AND m.`message_type` = ? AND m.`message_key` = ? LOCK IN SHARE MODE);

-- deleteIdentities
-- Locks rows that this transaction has inserted.
DELETE m FROM `local_message` AS m WHERE /*M! (@@in_transaction = 1 OR @@autocommit = 0) AND */ CASE WHEN FALSE THEN FALSE WHEN ROW_COUNT() = 0 THEN EXP(999) ELSE TRUE END AND ((m.`message_type` = ? AND m.`message_key` = ?));

-- =================================================================================================
-- Holding shards

-- ensureShards
-- Parallel calls meet at the primary key, and ON DUPLICATE KEY keeps the existing row.
INSERT INTO `local_message_shard` (table_name, shard)
  SELECT ?, every.shard FROM (SELECT 0 AS shard UNION ALL SELECT 1 AS shard UNION ALL SELECT 2 AS shard UNION ALL SELECT 3 AS shard UNION ALL SELECT 4 AS shard UNION ALL SELECT 5 AS shard UNION ALL SELECT 6 AS shard UNION ALL SELECT 7 AS shard UNION ALL SELECT 8 AS shard UNION ALL SELECT 9 AS shard UNION ALL SELECT 10 AS shard UNION ALL SELECT 11 AS shard UNION ALL SELECT 12 AS shard UNION ALL SELECT 13 AS shard UNION ALL SELECT 14 AS shard UNION ALL SELECT 15 AS shard) AS every
  WHERE NOT EXISTS (SELECT 1 FROM `local_message_shard` AS s WHERE s.table_name = ? AND s.shard = every.shard)
  ON DUPLICATE KEY UPDATE epoch = epoch;

-- reportInstance
-- Running relays and suspension rules. Each writing statement locks the registry rows it writes
-- (its own or dead instances') until it ends; no other statement writes them.
INSERT INTO `local_message_relay` (table_name, owner, label, seen_at) VALUES (?, ?, ?, UTC_TIMESTAMP(3))
  ON DUPLICATE KEY UPDATE label = VALUES(label), seen_at = UTC_TIMESTAMP(3);

-- writeReport
-- Running relays and suspension rules. Each writing statement locks the registry rows it writes
-- (its own or dead instances') until it ends; no other statement writes them.
UPDATE `local_message_relay` SET report = ?, reported_at = UTC_TIMESTAMP(3) WHERE table_name = ? AND owner = ?;

-- readReports
-- Rows: owner, label, silent_ms (since its last sign of life), report, report_age_ms (NULL: none).
SELECT owner, label, TIMESTAMPDIFF(MICROSECOND, seen_at, UTC_TIMESTAMP(3)) DIV 1000 AS silent_ms, report,
    TIMESTAMPDIFF(MICROSECOND, reported_at, UTC_TIMESTAMP(3)) DIV 1000 AS report_age_ms
  FROM `local_message_relay` WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') ORDER BY table_name, owner;

-- renew
-- Locks the lease rows it writes. A takeover changes the epoch.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.lease_until = UTC_TIMESTAMP(3) + INTERVAL 10000 * 1000 MICROSECOND, s.lease_ms = 10000
  WHERE s.owner = ? AND s.epoch = j.epoch;

-- readLeases
-- Rows: shard, owner, epoch, lease_until (text), lease_ms.
SELECT shard, owner, epoch, CAST(lease_until AS CHAR) AS lease_until, lease_ms FROM `local_message_shard` WHERE table_name = ? ORDER BY shard;

-- readInstances
-- Both bounds: after the clock was set back, a dead instance would otherwise count as alive until
-- the clock catches up (rule: hand-over).
SELECT owner, label, seen_at BETWEEN UTC_TIMESTAMP(3) - INTERVAL 10000 * 1000 MICROSECOND
    AND UTC_TIMESTAMP(3) + INTERVAL 10000 * 1000 MICROSECOND AS alive
  FROM `local_message_relay` WHERE table_name = ? ORDER BY owner;

-- readSuspensions
-- Rows: scope, value, reason, author, ends_in_ms, without ended ones.
SELECT scope, value, reason, author, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), ends_at) DIV 1000 AS ends_in_ms
  FROM `local_message_suspension` WHERE table_name = ? AND (ends_at IS NULL OR ends_at > UTC_TIMESTAMP(3)) ORDER BY scope, value;

-- take
-- Takes the shards exactly as observed or not at all: the second of two takers finds another epoch.
-- Waits for the old owner's fenced statements, which share-lock the lease row; later ones find the
-- new epoch.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
      shard INT PATH '$[0]', epoch BIGINT PATH '$[1]', owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$[2]',
      lease_until DATETIME(3) PATH '$[3]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.owner = ?, s.epoch = s.epoch + 1, s.lease_until = UTC_TIMESTAMP(3) + INTERVAL 10000 * 1000 MICROSECOND, s.lease_ms = 10000
  WHERE s.epoch = j.epoch AND s.owner <=> j.owner AND s.lease_until = j.lease_until;

-- recoverShards
-- Second statement of a takeover, so it sees every claim committed before the lease rows became
-- ours (rule: takeover-fence). Reads a range of the state index with the rows in flight, hundreds
-- at most. SKIP LOCKED, because a plain UPDATE may walk the table and wait for users' uncommitted
-- rows; a locked `sending` row is left to the sweep (rule: watched-sending).
UPDATE (SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
    WHERE m.`state` = 1 AND CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 IN (0)
    LIMIT 1000000 FOR UPDATE SKIP LOCKED) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`state` = 0;

-- recoverListed
-- Locks the free listed rows; the lease rows are this transaction's already. Skips a row that a
-- user holds, without counting this delivery, because our first batch replaces the list (rule:
-- listed-in-flight). That is safe: a late settle of the old owner fails at the epoch, and the crash
-- limit (rule: crash-counting) is reached one crash later.
UPDATE (SELECT m.`id` AS id FROM (SELECT ids.id AS id FROM `local_message_shard` AS s
      STRAIGHT_JOIN JSON_TABLE(COALESCE(s.in_flight, '[]'), '$[*]' COLUMNS (id BIGINT PATH '$')) AS ids
      WHERE s.table_name = ? AND s.shard IN (0) LIMIT 1000000) AS listed
    STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = listed.id
    WHERE m.`state` = 0
    LIMIT 1000000 FOR UPDATE SKIP LOCKED) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`delivery_count` = m.`delivery_count` + 1, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1;

-- clearListed
-- Part of a takeover, whose transaction has locked these lease rows.
UPDATE `local_message_shard` SET in_flight = NULL WHERE table_name = ? AND shard IN (0);

-- release
-- Another relay may take the shard right after it, which raises the epoch.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.owner = NULL, s.in_flight = NULL, s.lease_until = UTC_TIMESTAMP(3)
  WHERE s.owner = ? AND s.epoch = j.epoch;

-- removeInstance
-- Running relays and suspension rules. Each writing statement locks the registry rows it writes
-- (its own or dead instances') until it ends; no other statement writes them.
DELETE FROM `local_message_relay` WHERE table_name = ? AND owner = ?;

-- forgetInstances
-- Running relays and suspension rules. Each writing statement locks the registry rows it writes
-- (its own or dead instances') until it ends; no other statement writes them.
DELETE FROM `local_message_relay` WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') AND seen_at < UTC_TIMESTAMP(3) - INTERVAL 24 HOUR;

-- =================================================================================================
-- Finding what waits

-- scan
-- Two branches on (state, next_retry_at) plus InnoDB's id: due rows by time, immediate rows by id.
-- IGNORE INDEX (PRIMARY), because with many waiting rows the optimizer walks the primary key
-- through every finished row. Each branch examines at most LIMIT rows (rule: bounded-scan); a row
-- of another shard comes back without its body. A row with only deliver_at set, by plain SQL, is
-- left out of the immediate branch until it is due.
(SELECT m.`id` AS id, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`message_type` AS message_type, m.`message_key` AS message_key,
    m.`topic` AS topic, IF(OCTET_LENGTH(m.`message_body`) <= 1048576, m.`message_body`, NULL) AS message_body, m.`headers` AS headers, m.`content_type` AS content_type,
    m.`ordering_key` AS ordering_key, m.`retry_count` AS retry_count,
    m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash,
    (m.`sent_at` IS NOT NULL) AS resend, TIMESTAMPDIFF(MICROSECOND, GREATEST(m.`gmt_create`, COALESCE(m.`deliver_at`, m.`gmt_create`)), UTC_TIMESTAMP(3)) DIV 1000 AS waiting_ms,
    OCTET_LENGTH(m.`message_body`) AS body_bytes, 1 AS due
  FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 0 AND m.`next_retry_at` <= UTC_TIMESTAMP(3)
  ORDER BY m.`next_retry_at`, m.`id` LIMIT 125)
UNION ALL
(SELECT m.`id` AS id, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`message_type` AS message_type, m.`message_key` AS message_key,
    m.`topic` AS topic, IF(OCTET_LENGTH(m.`message_body`) <= 1048576, m.`message_body`, NULL) AS message_body, m.`headers` AS headers, m.`content_type` AS content_type,
    m.`ordering_key` AS ordering_key, m.`retry_count` AS retry_count,
    m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash,
    (m.`sent_at` IS NOT NULL) AS resend, TIMESTAMPDIFF(MICROSECOND, GREATEST(m.`gmt_create`, COALESCE(m.`deliver_at`, m.`gmt_create`)), UTC_TIMESTAMP(3)) DIV 1000 AS waiting_ms,
    OCTET_LENGTH(m.`message_body`) AS body_bytes, 0 AS due
  FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 0 AND m.`next_retry_at` IS NULL AND m.`id` > ?
    AND (m.`deliver_at` IS NULL OR m.`deliver_at` <= UTC_TIMESTAMP(3))
  ORDER BY m.`id` LIMIT 500);

-- scan, of some shards
(SELECT m.`id` AS id, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`message_type` AS message_type, m.`message_key` AS message_key,
    m.`topic` AS topic, IF(CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 IN (-1, 0, 1) AND OCTET_LENGTH(m.`message_body`) <= 1048576, m.`message_body`, NULL) AS message_body, m.`headers` AS headers, m.`content_type` AS content_type,
    m.`ordering_key` AS ordering_key, m.`retry_count` AS retry_count,
    m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash,
    (m.`sent_at` IS NOT NULL) AS resend, TIMESTAMPDIFF(MICROSECOND, GREATEST(m.`gmt_create`, COALESCE(m.`deliver_at`, m.`gmt_create`)), UTC_TIMESTAMP(3)) DIV 1000 AS waiting_ms,
    IF(CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 IN (-1, 0, 1), OCTET_LENGTH(m.`message_body`), 0) AS body_bytes, 1 AS due
  FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 0 AND m.`next_retry_at` <= UTC_TIMESTAMP(3)
  ORDER BY m.`next_retry_at`, m.`id` LIMIT 125)
UNION ALL
(SELECT m.`id` AS id, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`message_type` AS message_type, m.`message_key` AS message_key,
    m.`topic` AS topic, IF(CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 IN (-1, 0, 1) AND OCTET_LENGTH(m.`message_body`) <= 1048576, m.`message_body`, NULL) AS message_body, m.`headers` AS headers, m.`content_type` AS content_type,
    m.`ordering_key` AS ordering_key, m.`retry_count` AS retry_count,
    m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash,
    (m.`sent_at` IS NOT NULL) AS resend, TIMESTAMPDIFF(MICROSECOND, GREATEST(m.`gmt_create`, COALESCE(m.`deliver_at`, m.`gmt_create`)), UTC_TIMESTAMP(3)) DIV 1000 AS waiting_ms,
    IF(CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 IN (-1, 0, 1), OCTET_LENGTH(m.`message_body`), 0) AS body_bytes, 0 AS due
  FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 0 AND m.`next_retry_at` IS NULL AND m.`id` > ?
    AND (m.`deliver_at` IS NULL OR m.`deliver_at` <= UTC_TIMESTAMP(3))
  ORDER BY m.`id` LIMIT 500);

-- scanTopics
-- The same two branches per topic, on an index on the topics of waiting rows or (state, topic).
-- They find ids in the index alone; with all fields in 40 branches, parsing would take longer than
-- running. One branch per constant topic, because a join with a topic list read the whole index.
SELECT m.`id` AS id, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`message_type` AS message_type, m.`message_key` AS message_key,
    m.`topic` AS topic, IF(OCTET_LENGTH(m.`message_body`) <= 1048576, m.`message_body`, NULL) AS message_body, m.`headers` AS headers, m.`content_type` AS content_type,
    m.`ordering_key` AS ordering_key, m.`retry_count` AS retry_count,
    m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash,
    (m.`sent_at` IS NOT NULL) AS resend, TIMESTAMPDIFF(MICROSECOND, GREATEST(m.`gmt_create`, COALESCE(m.`deliver_at`, m.`gmt_create`)), UTC_TIMESTAMP(3)) DIV 1000 AS waiting_ms,
    OCTET_LENGTH(m.`message_body`) AS body_bytes, p.due AS due
  FROM ((SELECT m.`id` AS id, 1 AS due FROM `local_message` AS m IGNORE INDEX (PRIMARY)
    WHERE m.`waiting_topic` = ? AND m.`next_retry_at` <= UTC_TIMESTAMP(3)
    ORDER BY m.`next_retry_at`, m.`id` LIMIT 125)
  UNION ALL
  (SELECT m.`id` AS id, 0 AS due FROM `local_message` AS m IGNORE INDEX (PRIMARY)
    WHERE m.`waiting_topic` = ? AND m.`next_retry_at` IS NULL AND m.`id` > ?
    AND (m.`deliver_at` IS NULL OR m.`deliver_at` <= UTC_TIMESTAMP(3))
    ORDER BY m.`id` LIMIT 500)) AS p
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = p.id;

-- nextTopics
-- MIN over a range of (state, topic) is one index lookup.
SELECT MIN(m.`waiting_topic`) AS topic FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`waiting_topic` > ?;

-- readBodies
-- Aliases: id message_body.
SELECT m.`id` AS id, m.`message_body` AS message_body FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100);

-- keyQueues
-- For each key, the unfinished rows up to its largest candidate id (rule: key-order). Uses the
-- column for keys of unfinished rows if the table has it, else (ordering_key, state).
--
-- Few keys are read by exact ranges. For many keys the optimizer takes longer over the ranges than
-- the read itself (333 keys, MariaDB 10.11: 41 ms against 35; MySQL 9: 129 against 53), so they
-- come as a JSON_TABLE, which reads every entry of the key and skips those behind up_to_id.
SELECT m.`ordering_key` AS ordering_key, m.`id` AS id, m.`state` AS state,
    (m.`state` = 0 AND (m.`next_retry_at` IS NULL OR m.`next_retry_at` <= UTC_TIMESTAMP(3))) AS due, (m.`sent_at` IS NOT NULL) AS resend,
    m.`retry_count` AS retry_count, m.`message_type` AS message_type
  FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE (m.`open_key` = ? AND m.`state` IN (0, 1, 5, 3) AND m.`id` <= ?)
  ORDER BY m.`ordering_key`, m.`id`;

-- keyQueues, of many keys
SELECT m.`ordering_key` AS ordering_key, m.`id` AS id, m.`state` AS state,
    (m.`state` = 0 AND (m.`next_retry_at` IS NULL OR m.`next_retry_at` <= UTC_TIMESTAMP(3))) AS due, (m.`sent_at` IS NOT NULL) AS resend,
    m.`retry_count` AS retry_count, m.`message_type` AS message_type
  FROM JSON_TABLE(?, '$[*]' COLUMNS (
      ordering_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]', up_to_id BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (idx_open_key) ON m.`open_key` = j.ordering_key AND m.`state` IN (0, 1, 5, 3)
  WHERE m.`id` + 0 <= j.up_to_id
  ORDER BY m.`ordering_key`, m.`id`;

-- =================================================================================================
-- Taking it

-- claim
-- One multi-table UPDATE, because it locks the lease rows in share mode, which a sub-query would
-- not (rule: takeover-fence): either a takeover waits for it, or it waits, finds another owner and
-- changes nothing. Locks message rows in id order. Writes fixed-size columns only, so no row moves
-- in its page. If we die right after it, the rows stay `sending`, and the next owner recovers them.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`state` = 1, m.`delivery_count` = m.`delivery_count` + 1, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1
  WHERE m.`state` = 0 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash ;

-- claim, past locked rows
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`state` = 1, m.`delivery_count` = m.`delivery_count` + 1, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1
  WHERE m.`state` = 0 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash ;

-- verifyClaim
-- Alias: id.
SELECT m.`id` AS id
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  WHERE m.`state` = 1 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- listInFlight
-- Fenced like the claim, on the lease rows it writes. If we die right after it, the next owner
-- finds the ids there (rule: listed-in-flight).
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]', ids MEDIUMTEXT PATH '$[2]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.in_flight = j.ids
  WHERE s.owner = ? AND s.epoch = j.epoch;

-- readHeld
-- Alias: shard. Held shards at their epochs, to see which lists were written.
SELECT s.shard AS shard
  FROM JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  WHERE s.owner = ? AND s.epoch = j.epoch;

-- =================================================================================================
-- Writing what came of it

-- settleSent
-- A `consumed` row only gets its receipt; its lock_version has moved, so delivery_count identifies
-- the claim. The state is written last, because assignments see earlier ones. If we die before it,
-- the message is sent again with the same identity; right after it, nothing is missing.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]',
      delivery_count BIGINT PATH '$[5]', message_id VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[6]', next_ms BIGINT PATH '$[7]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`state` = 4, m.`next_retry_at`, IF(j.next_ms IS NULL, NULL, UTC_TIMESTAMP(3) + INTERVAL (j.next_ms) * 1000 MICROSECOND)),
    m.`last_retry_at` = IF(m.`state` = 4, m.`last_retry_at`, UTC_TIMESTAMP(3) - INTERVAL 5 * 1000 MICROSECOND),
    m.`fail_reason` = IF(m.`state` = 4, m.`fail_reason`, NULL),
    m.`message_id` = j.message_id,
    m.`sent_at` = UTC_TIMESTAMP(3),
    m.`settle_pad` = '',
    m.`state` = IF(m.`state` = 4, m.`state`, 2), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE (m.`state` = 1 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash)
    OR (m.`state` = 4 AND m.`message_id` IS NULL AND m.`delivery_count` = j.delivery_count AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash);

-- deleteSent
-- A multi-table DELETE locks the lease rows in share mode. A row that a confirmation has overtaken
-- is left to housekeeping. If we die before it, the message is sent again with the same identity;
-- right after it, nothing is missing.
DELETE m FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  WHERE m.`state` = 1 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- settleOther
-- Returns rows to `pending`, or fails them. Without an attempt (retry_delta = 0) last_retry_at
-- stays.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]',
      failed INT PATH '$[5]', retry_delta INT PATH '$[6]', delivery_delta BIGINT PATH '$[7]', next_ms BIGINT PATH '$[8]',
      fail_reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[9]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = CASE
      WHEN j.failed = 1 THEN IF(j.next_ms IS NULL, NULL, UTC_TIMESTAMP(3) + INTERVAL (j.next_ms) * 1000 MICROSECOND)
      WHEN j.next_ms IS NULL THEN IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL)
      ELSE GREATEST(COALESCE(m.`deliver_at`, UTC_TIMESTAMP(3) + INTERVAL (j.next_ms) * 1000 MICROSECOND), UTC_TIMESTAMP(3) + INTERVAL (j.next_ms) * 1000 MICROSECOND) END,
    m.`retry_count` = COALESCE(m.`retry_count`, 0) + j.retry_delta,
    m.`fail_reason` = COALESCE(j.fail_reason, m.`fail_reason`),
    m.`delivery_count` = GREATEST(m.`delivery_count` + j.delivery_delta, 0),
    m.`last_retry_at` = IF(j.retry_delta = 1, UTC_TIMESTAMP(3) - INTERVAL 5 * 1000 MICROSECOND, m.`last_retry_at`),
    m.`state` = IF(j.failed = 1, 3, 0), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` = 1 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- readRows
-- Current rows. Aliases: id state delivery_count lock_version.
SELECT m.`id` AS id, m.`state` AS state, m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id;

-- lockFreeRows
-- Exclusive locks on existing rows, held for this short transaction.
SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100) FOR UPDATE SKIP LOCKED;

-- =================================================================================================
-- What consumers report

-- confirmIdentities
-- Locks the rows in identity order, as all confirmations do. A settle locks by id, so the two can
-- deadlock, and the victim tries again. If we die right after it, the transaction rolls back, and
-- the consumer confirms again.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE JSON_TABLE(?, '$[*]' COLUMNS (type VARCHAR(64) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]', name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (uk_type_key)
    ON m.`message_type` = j.type AND m.`message_key` = j.name
  SET m.`consumed_at` = UTC_TIMESTAMP(3), m.`next_retry_at` = NULL, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`state` = 4
  WHERE CASE WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */ ELSE TRUE END AND m.`state` IN (2, 1, 0, 3, 5);

-- lockIdentities
-- Locks the rows in the order of confirmIdentities until the transaction ends; other confirmations
-- and settles of them wait. If we die right after it, nothing has changed.
SELECT CAST(m.`id` AS CHAR) AS id, m.`message_type` AS messagetype, m.`message_key` AS messagekey,
    m.`state` AS state, m.`delivery_count` AS deliverycount FROM JSON_TABLE(?, '$[*]' COLUMNS (type VARCHAR(64) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]', name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (uk_type_key)
    ON m.`message_type` = j.type AND m.`message_key` = j.name WHERE CASE WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */ ELSE TRUE END FOR UPDATE /*!80000 OF m */;

-- lockIdentities, in the archive
(SELECT CAST(m.`id` AS CHAR) AS id, m.`message_type` AS messagetype, m.`message_key` AS messagekey,
    m.`state` AS state, m.`delivery_count` AS deliverycount FROM `local_message_archive` AS m WHERE CASE WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */ ELSE TRUE END AND m.`message_type` = ? AND m.`message_key` = ? FOR UPDATE);

-- confirmRows
-- lockIdentities has locked the rows.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`consumed_at` = UTC_TIMESTAMP(3), m.`next_retry_at` = NULL, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`state` = 4
  WHERE m.`state` IN (2, 1, 0, 3, 5);

-- confirmArchived
-- lockIdentities has locked the rows. No other statement changes a row of the archive.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE /*+ SET_VAR(sql_safe_updates = 0) */ `local_message_archive` AS m
  SET m.`consumed_at` = UTC_TIMESTAMP(3), m.`next_retry_at` = NULL, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`state` = 4
  WHERE ((m.`message_type` = ? AND m.`message_key` = ?)) AND m.`state` IN (2, 1, 0, 3, 5);

-- touchRows
-- lockIdentities has locked the rows.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1;

-- reportFailed
-- lockIdentities has locked the rows.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = j.reason, m.`next_retry_at` = UTC_TIMESTAMP(3), m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1
  WHERE m.`state` = 2;

-- addConfirmations
-- lockIdentities holds the messages, so no other transaction adds the same rows.
INSERT INTO `local_message_confirmation` (table_name, message, consumer, confirmed_at)
  VALUES (?, ?, ?, UTC_TIMESTAMP(3))
  ON DUPLICATE KEY UPDATE consumer = VALUES(consumer);

-- readConfirmations
-- A locking read sees committed data. The messages are locked already, so it does not wait.
SELECT CAST(c.message AS CHAR) AS id, c.consumer AS consumer
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message_confirmation` AS c FORCE INDEX (PRIMARY) ON c.table_name = ? AND c.message = j.id
  FOR UPDATE /*!80000 OF c */;

-- forgetConfirmations
-- Locks entries from the oldest on; confirmations only add younger ones. If we die right after it,
-- the expired entries are gone.
DELETE FROM `local_message_confirmation` WHERE table_name = ? AND confirmed_at <= UTC_TIMESTAMP(3) - INTERVAL ? * 1000 MICROSECOND
  ORDER BY confirmed_at LIMIT 500;

-- countUnknown
-- A plain read: two parallel counts may exceed the limit by one call each.
SELECT COUNT(*) AS kept FROM (SELECT 1 FROM `local_message_unmatched` WHERE table_name = ? LIMIT 10000) AS u;

-- keepUnknown
-- Locks these entries in row order, as all calls do. If we die right after it, nothing is kept, but
-- the confirmations have committed before.
INSERT INTO `local_message_unmatched` (table_name, message_type, message_key, consumer, reason, times, first_at, last_at)
  SELECT ?, j.type, j.name, j.said_by, j.why, j.said, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)
  FROM JSON_TABLE(?, '$[*]' COLUMNS (type VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[0]', name VARCHAR(128) CHARACTER SET utf8mb4 PATH '$[1]', said_by VARCHAR(128) CHARACTER SET utf8mb4 PATH '$[2]', why VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[3]' NULL ON EMPTY, said INT PATH '$[4]')) AS j
  WHERE CASE WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */ ELSE TRUE END
  ON DUPLICATE KEY UPDATE reason = VALUES(reason), times = times + VALUES(times), last_at = VALUES(last_at);

-- forgetUnknown
-- Locks entries from the oldest on; a repeated report makes its entry younger. If we die right
-- after it, the expired entries are gone.
DELETE FROM `local_message_unmatched` WHERE table_name = ? AND last_at <= UTC_TIMESTAMP(3) - INTERVAL ? * 1000 MICROSECOND
  ORDER BY last_at LIMIT 500;

-- =================================================================================================
-- Not now

-- setBehind
-- Locks the free heads still in place, then the free followers, then, in the join, the lease rows
-- in share mode. A settle of the head has either committed (the head is finished), holds it (the
-- head is skipped), or waits for us and then finds the followers. A plain read could miss a settle
-- about to commit, and the followers would wait for no head. LIMIT keeps the optimizer from merging
-- the reads into the join, where they would block. If we die right after it, the settle of the head
-- brings the followers back.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]', head_id BIGINT PATH '$[5]', instant VARCHAR(23) CHARACTER SET ascii PATH '$[6]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN (SELECT m.`id` AS id, m.`ordering_key` AS ordering_key FROM `local_message` AS m FORCE INDEX (PRIMARY)
    WHERE m.`id` IN (99) AND m.`state` IN (0, 1, 5, 3)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS h ON h.id = j.head_id AND h.id < j.id
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id AND m.`ordering_key` = h.ordering_key
  SET m.`next_retry_at` = j.instant, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` = 0 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash
    AND (m.`next_retry_at` IS NULL OR m.`next_retry_at` <= UTC_TIMESTAMP(3));

-- bringBack
-- Locks the rows it changes and skips locked ones. Not fenced: each settle or move of a head brings
-- its followers back, and doing so twice changes nothing.
UPDATE (SELECT c.id FROM (SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
    WHERE m.`state` = 0 AND m.`next_retry_at` IN (?)
    ORDER BY m.`next_retry_at`, m.`id` LIMIT NaN OFFSET NaN FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3);

-- nextBehind
-- One index lookup, MIN over a range of (state, next_retry_at). Returned as stored, without a time
-- zone.
SELECT LEFT(DATE_FORMAT(MIN(m.`next_retry_at`), '%Y-%m-%dT%H:%i:%s.%f'), 23) AS instant
  FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 AND m.`next_retry_at` > ?;

-- park
-- Not a transition: the row stays pending until later, never before deliver_at.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = GREATEST(COALESCE(m.`deliver_at`, UTC_TIMESTAMP(3) + INTERVAL (5000) * 1000 MICROSECOND), UTC_TIMESTAMP(3) + INTERVAL (5000) * 1000 MICROSECOND), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` = 0 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- resetBackoff
-- Moves waiting rows of the topic forward, in id order, `stepMs` apart; for failed rows their slow
-- retry. Only rows that wait longer than the whole ramp, so a second call continues where the first
-- ended. Delayed rows stay (rule: delay-is-not-retry; without deliver_at those that never failed),
-- and so do rows set behind.
UPDATE (SELECT c.id, ROW_NUMBER() OVER (ORDER BY c.id) - 1 + NaN AS place FROM (
    SELECT m.`id` AS id FROM `local_message` AS m
    WHERE m.`state` IN (0, 3) AND m.`next_retry_at` > UTC_TIMESTAMP(3) + INTERVAL (500) * 1000 MICROSECOND AND m.`next_retry_at` < '3000-01-01 00:00:00.000'
      AND m.`topic` = ? AND (m.`deliver_at` IS NULL OR m.`deliver_at` <= UTC_TIMESTAMP(3))
    ORDER BY m.`id` LIMIT NaN OFFSET NaN FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = UTC_TIMESTAMP(3) + INTERVAL (j.place * 1) * 1000 MICROSECOND, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` IN (0, 3);

-- readClock
-- For a clock that was set back. Locks free rows in id order; no relay works on them, because they
-- are not due. If we die right after it, those rows are due, and the rest wait for their time.
SELECT TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000 AS now_ms;

-- shortenWaits
-- For a clock that was set back. Locks free rows in id order; no relay works on them, because they
-- are not due. If we die right after it, those rows are due, and the rest wait for their time.
UPDATE (SELECT c.id, ROW_NUMBER() OVER (ORDER BY c.id) - 1 + NaN AS place FROM (
    SELECT m.`id` AS id FROM `local_message` AS m
    WHERE m.`state` = 0 AND m.`retry_count` > 0
      AND m.`next_retry_at` > UTC_TIMESTAMP(3) + INTERVAL (600000) * 1000 MICROSECOND AND m.`next_retry_at` < '3000-01-01 00:00:00.000'
      AND (m.`deliver_at` IS NULL OR m.`next_retry_at` > m.`deliver_at` + INTERVAL 600000 * 1000 MICROSECOND)
    ORDER BY m.`id` LIMIT NaN OFFSET NaN FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = GREATEST(COALESCE(m.`deliver_at`, UTC_TIMESTAMP(3) + INTERVAL (j.place * 1) * 1000 MICROSECOND), UTC_TIMESTAMP(3) + INTERVAL (j.place * 1) * 1000 MICROSECOND), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` = 0;

-- suspendPending
-- Changes to rows that a relay scanned or claimed; fenced, token compared. They lock the free
-- message rows before the join (LIMIT prevents a merge into the join, which would block); rows that
-- a user holds are met again. Lease rows are locked in share mode. No other relay may claim the
-- rows, and a person's change shows in the token. If we die right after it, each row is either as
-- it was or as decided.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = ?, m.`next_retry_at` = NULL, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3),
    m.`state` = 5
  WHERE m.`state` = 0 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- failPending
-- Changes to rows that a relay scanned or claimed; fenced, token compared. They lock the free
-- message rows before the join (LIMIT prevents a merge into the join, which would block); rows that
-- a user holds are met again. Lease rows are locked in share mode. No other relay may claim the
-- rows, and a person's change shows in the token. If we die right after it, each row is either as
-- it was or as decided.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]', fail_reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[5]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = j.fail_reason, m.`next_retry_at` = NULL, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3),
    m.`state` = 3
  WHERE m.`state` = 0 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- =================================================================================================
-- Looking after it

-- listSending
-- Aliases: id shard delivery_count lock_version topic.
SELECT m.`id` AS id, m.`topic` AS topic, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash
  FROM `local_message` AS m
  WHERE m.`state` = 1  LIMIT 500;

-- recoverRows
-- Fenced like the claim: after a takeover the successor has returned the rows already.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`state` = 0
  WHERE m.`state` = 1 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- listTimed
-- One range of (state, next_retry_at) per state, each limited to LIMIT rows.
(SELECT m.`id` AS id, m.`state` AS state, m.`message_type` AS message_type,
    m.`message_key` AS message_key, m.`topic` AS topic, m.`retry_count` AS retry_count, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash,
    TIMESTAMPDIFF(MICROSECOND, m.`gmt_create`, UTC_TIMESTAMP(3)) DIV 1000 AS age_ms,
    m.`fail_reason` AS fail_reason
  FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 2 AND m.`next_retry_at` <= UTC_TIMESTAMP(3)
  ORDER BY m.`next_retry_at` LIMIT 500)
UNION ALL
(SELECT m.`id` AS id, m.`state` AS state, m.`message_type` AS message_type,
    m.`message_key` AS message_key, m.`topic` AS topic, m.`retry_count` AS retry_count, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash,
    TIMESTAMPDIFF(MICROSECOND, m.`gmt_create`, UTC_TIMESTAMP(3)) DIV 1000 AS age_ms,
    m.`fail_reason` AS fail_reason
  FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 3 AND m.`next_retry_at` <= UTC_TIMESTAMP(3)
  ORDER BY m.`next_retry_at` LIMIT 500)
UNION ALL
(SELECT m.`id` AS id, m.`state` AS state, m.`message_type` AS message_type,
    m.`message_key` AS message_key, m.`topic` AS topic, m.`retry_count` AS retry_count, CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash,
    TIMESTAMPDIFF(MICROSECOND, m.`gmt_create`, UTC_TIMESTAMP(3)) DIV 1000 AS age_ms,
    m.`fail_reason` AS fail_reason
  FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 5 AND m.`next_retry_at` <= UTC_TIMESTAMP(3)
  ORDER BY m.`next_retry_at` LIMIT 500);

-- applyTimed, slowRetry
-- Locks the rows in id order. A person or consumer who changed a row since it was listed has moved
-- its token, and wins. If we die right after it, every row is either as decided or still due.
--
-- `skipLocked` locks and changes free rows only; the others are still due and come again. LIMIT
-- keeps the optimizer from merging the read into the join, which would block.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', token BIGINT PATH '$[1]', identity_hash BIGINT PATH '$[2]', next_ms BIGINT PATH '$[3]',
      fail_reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[4]')) AS j
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`state` = 0, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` IN (3) AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- applyTimed, resume
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', token BIGINT PATH '$[1]', identity_hash BIGINT PATH '$[2]', next_ms BIGINT PATH '$[3]',
      fail_reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[4]')) AS j
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`state` = 0, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` IN (5) AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- applyTimed, confirmTimeoutResend
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', token BIGINT PATH '$[1]', identity_hash BIGINT PATH '$[2]', next_ms BIGINT PATH '$[3]',
      fail_reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[4]')) AS j
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = COALESCE(j.fail_reason, m.`fail_reason`), m.`retry_count` = COALESCE(m.`retry_count`, 0) + 1, m.`next_retry_at` = IF(j.next_ms IS NULL, NULL, UTC_TIMESTAMP(3) + INTERVAL (j.next_ms) * 1000 MICROSECOND), m.`state` = 0, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` IN (2) AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- applyTimed, confirmTimeoutFail
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', token BIGINT PATH '$[1]', identity_hash BIGINT PATH '$[2]', next_ms BIGINT PATH '$[3]',
      fail_reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[4]')) AS j
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = COALESCE(j.fail_reason, m.`fail_reason`), m.`retry_count` = COALESCE(m.`retry_count`, 0) + 1, m.`next_retry_at` = IF(j.next_ms IS NULL, NULL, UTC_TIMESTAMP(3) + INTERVAL (j.next_ms) * 1000 MICROSECOND), m.`state` = 3, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` IN (2) AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- applyTimed, clearTimer
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', token BIGINT PATH '$[1]', identity_hash BIGINT PATH '$[2]', next_ms BIGINT PATH '$[3]',
      fail_reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[4]')) AS j
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`state` = 2, TIMESTAMP'9999-12-31 00:00:00', NULL), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` IN (2, 3) AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- listStrays
-- NOT IN with constants reads the ranges between them, so known states are not read. The other part
-- is a range of the primary key that is empty in a healthy table.
(SELECT m.`id` AS id FROM `local_message` AS m WHERE (m.`state` NOT IN (0, 1, 2, 3, 4, 5) OR m.`state` IS NULL) LIMIT 500)
UNION ALL
(SELECT m.`id` AS id FROM `local_message` AS m WHERE m.`id` < 1 AND m.`state` = 0 LIMIT 500);

-- failUnknownStates
-- SKIP LOCKED, because a conditional UPDATE waits for every uncommitted row of a user.
UPDATE (SELECT c.id FROM (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY)
    WHERE m.`id` IN (100) AND (m.`state` NOT IN (0, 1, 2, 3, 4, 5) OR m.`state` IS NULL)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = CONCAT('UNKNOWN_STATE: the column held ', COALESCE(m.`state`, 'NULL'), '; retry the message, or correct the program that wrote it'),
    m.`next_retry_at` = NULL, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`state` = 3;

-- failUnreached
-- Locks the free rows that match and fails them. If we die right after it, the reason is on the
-- row.
UPDATE (SELECT c.id FROM (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY)
    WHERE m.`id` IN (100) AND m.`id` < 1 AND m.`state` = 0
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = 'ID_BELOW_ONE: ids begin at 1, and no relay looks below; insert the message again with an id of the column itself',
    m.`next_retry_at` = NULL, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`state` = 3;

-- gauges
-- Unfinished rows only, at most `limit` per state, so a gauge never costs as much as a drain.
-- Newest failed rows first: behind 10,000 old ones, those of another topic would be missed.
SELECT g.topic AS topic, g.state AS state, COUNT(*) AS count, MAX(TIMESTAMPDIFF(MICROSECOND, g.since, UTC_TIMESTAMP(3))) DIV 1000 AS oldest_age_ms
  FROM (
    (SELECT m.`topic` AS topic, m.`state` AS state, m.`gmt_create` AS since
      FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 LIMIT 10000)
    UNION ALL
    (SELECT m.`topic` AS topic, m.`state` AS state, m.`gmt_create` AS since
      FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 1 LIMIT 10000)
    UNION ALL
    (SELECT m.`topic` AS topic, m.`state` AS state, m.`gmt_create` AS since
      FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 5 LIMIT 10000)
    UNION ALL
    (SELECT m.`topic` AS topic, m.`state` AS state, m.`gmt_create` AS since
      FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 3 AND m.`next_retry_at` IS NULL ORDER BY m.`id` DESC LIMIT 10000)
    UNION ALL
    (SELECT m.`topic` AS topic, m.`state` AS state, m.`gmt_create` AS since
      FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 3 AND m.`next_retry_at` IS NOT NULL ORDER BY m.`next_retry_at` DESC LIMIT 10000)
  ) AS g GROUP BY g.topic, g.state;

-- =================================================================================================
-- Moving it away

-- lockFinished
-- Reads the next LIMIT rows of (state, NULL) by id, which bounds the work, and locks old enough
-- ones. SKIP LOCKED leaves locked rows for the next run. next_retry_at NULL is checked again under
-- the lock.
SELECT m.`id` AS id
  FROM (SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
    WHERE m.`state` = 2 AND m.`next_retry_at` IS NULL AND m.`id` > ? ORDER BY m.`id` LIMIT 500) AS c
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = c.id
  WHERE m.`state` = 2 AND m.`next_retry_at` IS NULL
    AND COALESCE(m.`sent_at`, m.`gmt_modified`) <= UTC_TIMESTAMP(3) - INTERVAL ? * 1000 MICROSECOND
  FOR UPDATE SKIP LOCKED;

-- passFinished
-- Reads `rows` index entries and no row. No lock.
SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 2 AND m.`next_retry_at` IS NULL AND m.`id` > ? ORDER BY m.`id` LIMIT 1 OFFSET 499;

-- copyToArchive
-- lockFinished or lockRows has locked the rows.
INSERT INTO `local_message_archive` (`id`, `message_type`, `message_key`, `topic`, `message_body`, `state`, `retry_count`, `next_retry_at`, `fail_reason`, `gmt_create`, `gmt_modified`, `last_retry_at`, `headers`, `content_type`, `ordering_key`, `delivery_count`, `deliver_at`, `message_id`, `lock_version`, `sent_at`, `consumed_at`, `created_by`, `updated_by`, archived_at)
  SELECT m.`id`, m.`message_type`, m.`message_key`, m.`topic`, m.`message_body`, m.`state`, m.`retry_count`, m.`next_retry_at`, m.`fail_reason`, m.`gmt_create`, m.`gmt_modified`, m.`last_retry_at`, m.`headers`, m.`content_type`, m.`ordering_key`, m.`delivery_count`, m.`deliver_at`, m.`message_id`, m.`lock_version`, m.`sent_at`, m.`consumed_at`, m.`created_by`, m.`updated_by`, UTC_TIMESTAMP(3)
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id;

-- deleteRows
-- Locked like copyToArchive, so exactly the copied rows are deleted.
DELETE m FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id;

-- purgeArchive
-- Locks rows of the archive from the oldest on. No other statement writes old ones.
DELETE FROM `local_message_archive` WHERE archived_at <= UTC_TIMESTAMP(3) - INTERVAL ? * 1000 MICROSECOND ORDER BY archived_at LIMIT 500;

-- =================================================================================================
-- What people do

-- find
-- Aliases: id lock_version, for the archive also archived_at as text. In id order; rows with the
-- same id by archived_at.
SELECT CAST(m.`id` AS CHAR) AS id, CAST(m.`lock_version` AS CHAR) AS lock_version
FROM (SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
WHERE m.`message_type` IN (?) AND m.`message_key` = ?
  ORDER BY m.`id` DESC LIMIT 50) AS f
STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = f.id
ORDER BY m.`id` DESC;

-- find, of a rare state
SELECT CAST(m.`id` AS CHAR) AS id, CAST(m.`lock_version` AS CHAR) AS lock_version
FROM (SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
WHERE m.`topic` = ? AND m.`state` IN (3)
  ORDER BY m.`id` DESC LIMIT 50) AS f
STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = f.id
ORDER BY m.`id` DESC;

-- find, by ids
SELECT CAST(m.`id` AS CHAR) AS id, CAST(m.`lock_version` AS CHAR) AS lock_version
FROM (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY)
WHERE m.`id` >= 80001 AND INSTR(m.`fail_reason`, ?) > 0
  ORDER BY m.`id` DESC LIMIT 50) AS f
STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = f.id
ORDER BY m.`id` DESC;

-- chunkEnd
-- Alias: id, of the last of that many rows in this direction; no row if there are fewer. Walks the
-- primary key.
SELECT CAST(m.`id` AS CHAR) AS id FROM `local_message` AS m FORCE INDEX (PRIMARY)
WHERE m.`id` <= 100000
ORDER BY m.`id` DESC LIMIT 1 OFFSET 19999;

-- readMessages
-- Aliases of `MessageSummary` in snake_case, `state` raw; with `bodies` also message_body and
-- headers, for the archive also archived_at as in `find`. In any order.
SELECT CAST(m.`id` AS CHAR) AS id,
  m.`message_type` AS message_type,
  m.`message_key` AS message_key,
  m.`topic` AS topic,
  m.`state` AS state,
  CAST(m.`retry_count` AS CHAR) AS retry_count,
  CONCAT(LEFT(DATE_FORMAT(m.`next_retry_at`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS next_retry_at,
  m.`fail_reason` AS fail_reason,
  CONCAT(LEFT(DATE_FORMAT(m.`gmt_create`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS gmt_create,
  CONCAT(LEFT(DATE_FORMAT(m.`gmt_modified`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS gmt_modified,
  CONCAT(LEFT(DATE_FORMAT(m.`last_retry_at`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS last_retry_at,
  m.`content_type` AS content_type,
  m.`ordering_key` AS ordering_key,
  CAST(m.`delivery_count` AS CHAR) AS delivery_count,
  CONCAT(LEFT(DATE_FORMAT(m.`deliver_at`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS deliver_at,
  m.`message_id` AS message_id,
  CAST(m.`lock_version` AS CHAR) AS lock_version,
  CONCAT(LEFT(DATE_FORMAT(m.`sent_at`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS sent_at,
  CONCAT(LEFT(DATE_FORMAT(m.`consumed_at`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS consumed_at,
  m.`created_by` AS created_by,
  m.`updated_by` AS updated_by
FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100);

-- nextType
-- Alias: message_type, the next after this one; NULL for none. One lookup in the unique key.
SELECT MIN(m.`message_type`) AS message_type FROM `local_message` AS m WHERE m.`message_type` > ?;

-- idBounds
-- Aliases: first_id last_id, NULL in an empty table. Two lookups, because SQLite walks the table
-- for one.
SELECT (SELECT CAST(MIN(m.`id`) AS CHAR) FROM `local_message` AS m) AS first_id, (SELECT CAST(MAX(m.`id`) AS CHAR) FROM `local_message` AS m) AS last_id;

-- createdFrom
-- Aliases: id gmt_create, of the first row at or after each of these ids; for the archive the first
-- two, which may share the id.
(SELECT CAST(m.`id` AS CHAR) AS id, CONCAT(LEFT(DATE_FORMAT(m.`gmt_create`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS gmt_create
  FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` >= 100 ORDER BY m.`id` LIMIT 1)
UNION ALL
(SELECT CAST(m.`id` AS CHAR) AS id, CONCAT(LEFT(DATE_FORMAT(m.`gmt_create`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS gmt_create
  FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` >= 200 ORDER BY m.`id` LIMIT 1);

-- createdOfLastArchived
-- Aliases: id gmt_create, of the last archived rows.
SELECT CAST(m.`id` AS CHAR) AS id, CONCAT(LEFT(DATE_FORMAT(m.`gmt_create`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS gmt_create
FROM `local_message_archive` AS m FORCE INDEX (idx_archived_at) ORDER BY m.archived_at DESC LIMIT 64;

-- placeOf
-- Aliases: shard, clock (ISO text), due_in_ms, deliver_in_ms (NULL: no such time).
SELECT CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, CONCAT(LEFT(DATE_FORMAT(UTC_TIMESTAMP(3), '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS clock, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), m.`next_retry_at`) DIV 1000 AS due_in_ms, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), m.`deliver_at`) DIV 1000 AS deliver_in_ms
FROM `local_message` AS m WHERE m.`id` = ?;

-- countWaiting
-- Aliases: kind count next_in_ms, of pending messages: `backoff`, `delayed`, `due` or `behind`; at
-- most about `limit` each; a kind may come in several rows. Reads ranges of the index on state and
-- time, and the rows of waiting messages.
SELECT CASE WHEN c.held THEN 'delayed' ELSE 'backoff' END AS kind, COUNT(*) AS count, MIN(c.in_ms) AS next_in_ms
FROM (SELECT COALESCE(m.`deliver_at` > UTC_TIMESTAMP(3), FALSE) AS held, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), m.`next_retry_at`) DIV 1000 AS in_ms FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 AND m.`next_retry_at` > UTC_TIMESTAMP(3) AND m.`next_retry_at` < TIMESTAMP'3000-01-01 00:00:00.000' LIMIT 10000) AS c GROUP BY c.held
UNION ALL
SELECT 'due', COUNT(*), NULL FROM (SELECT 1 AS one FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 AND m.`next_retry_at` IS NULL LIMIT 10000) AS c
UNION ALL
SELECT 'due', COUNT(*), NULL FROM (SELECT 1 AS one FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 AND m.`next_retry_at` <= UTC_TIMESTAMP(3) LIMIT 10000) AS c
UNION ALL
SELECT 'behind', COUNT(*), NULL FROM (SELECT 1 AS one FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 AND m.`next_retry_at` >= TIMESTAMP'3000-01-01 00:00:00.000' LIMIT 10000) AS c;

-- readChanges
-- Aliases: made_at (ISO text) author action reason ids details. The newest `limit` changes by hand
-- that may include this message; `ids` tells.
SELECT CONCAT(LEFT(DATE_FORMAT(a.made_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS made_at, a.author AS author, a.action AS action, a.reason AS reason, a.ids AS ids, a.details AS details
FROM `local_message_audit` AS a WHERE a.table_name = 'local_message' AND a.first_id <= ? AND a.last_id >= ? ORDER BY a.id DESC LIMIT 100;

-- countStates
-- Aliases: state count. At most about `limit` each; a state may come in several rows. With `toSort`
-- counts only those that a page must sort, if an index has the others in id order. Reads only
-- indexes.
SELECT 3 AS state, COUNT(*) AS count FROM (
  SELECT 1 AS one FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 3 LIMIT 10000) AS c;

-- oldestDue
-- Aliases: id topic waiting_ms. At most two rows: the first without a time, the first due.
(SELECT CAST(m.`id` AS CHAR) AS id, m.`topic` AS topic, GREATEST(0, TIMESTAMPDIFF(MICROSECOND, m.`gmt_create`, UTC_TIMESTAMP(3)) DIV 1000) AS waiting_ms
  FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 AND m.`next_retry_at` IS NULL ORDER BY m.`id` LIMIT 1)
UNION ALL
(SELECT CAST(m.`id` AS CHAR) AS id, m.`topic` AS topic, GREATEST(0, TIMESTAMPDIFF(MICROSECOND, m.`next_retry_at`, UTC_TIMESTAMP(3)) DIV 1000) AS waiting_ms
  FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 AND m.`next_retry_at` <= UTC_TIMESTAMP(3) ORDER BY m.`next_retry_at`, m.`id` LIMIT 1);

-- countByState
-- Aliases: topic state count oldest_age_ms, over all states. Reads the whole table.
SELECT m.`topic` AS topic, m.`state` AS state, COUNT(*) AS count, GREATEST(0, TIMESTAMPDIFF(MICROSECOND, MIN(m.`gmt_create`), UTC_TIMESTAMP(3)) DIV 1000) AS oldest_age_ms
FROM `local_message` AS m GROUP BY m.`topic`, m.`state` ORDER BY topic, state;

-- lockRows
-- Aliases: id state lock_version fail_reason. Locks these rows in id order, like every statement,
-- until the change in the same transaction. By the primary key: with few rows or stale statistics
-- MySQL walks the whole table and waits for other rows.
SELECT CAST(m.`id` AS CHAR) AS id, m.`state` AS state, CAST(m.`lock_version` AS CHAR) AS lock_version, m.`fail_reason` AS fail_reason
FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100) ORDER BY m.`id` FOR UPDATE;

-- recordChange
-- Adds an audit row, which commits or rolls back with its change.
INSERT INTO `local_message_audit` (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
VALUES ('local_message', UTC_TIMESTAMP(3), ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?);

-- operatorRetry
-- lockRows has locked these rows, here and below. The states are checked again so that each
-- statement is safe by itself.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`retry_count` = 0, m.`delivery_count` = 0, m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`fail_reason` = IF(LEFT(m.`fail_reason`, 18) = 'suspended by rule ', NULL, m.`fail_reason`), m.`updated_by` = LEFT(?, 64), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3),
    m.`state` = 0
  WHERE m.`state` IN (3, 2);

-- bringForward
-- The rows are locked already, as for operatorRetry.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = NULL, m.`updated_by` = LEFT(?, 64), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` = 0 AND m.`next_retry_at` > UTC_TIMESTAMP(3) AND m.`next_retry_at` < '3000-01-01 00:00:00.000' AND (m.`deliver_at` IS NULL OR m.`deliver_at` <= UTC_TIMESTAMP(3));

-- suspendRows
-- The rows are locked already, as for operatorRetry.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = IF(LEFT(m.`fail_reason`, 18) = 'suspended by rule ', NULL, m.`fail_reason`), m.`next_retry_at` = NULL, m.`updated_by` = LEFT(?, 64), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3),
    m.`state` = 5
  WHERE m.`state` IN (0, 3);

-- resumeRows
-- The rows are locked already, as for operatorRetry.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = IF(LEFT(m.`fail_reason`, 18) = 'suspended by rule ', NULL, m.`fail_reason`), m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`updated_by` = LEFT(?, 64), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3),
    m.`state` = 0
  WHERE m.`state` IN (5);

-- putSuspension
-- Locks only this rule. Relays read it at their next heartbeat.
INSERT INTO `local_message_suspension` (table_name, scope, value, reason, author, ends_at)
  VALUES (?, ?, ?, LEFT(?, 512), LEFT(?, 64), NULL)
  ON DUPLICATE KEY UPDATE reason = VALUES(reason), author = VALUES(author), ends_at = VALUES(ends_at);

-- deleteSuspension
-- Locks its one rule; later statements resume its messages.
DELETE FROM `local_message_suspension` WHERE table_name = 'local_message' AND scope = ? AND value = ?;

-- listSuspendedBy
-- Aliases: id lock_version. Rows suspended by this rule, found by the beginning of fail_reason.
SELECT CAST(m.`id` AS CHAR) AS id, CAST(m.`lock_version` AS CHAR) AS lock_version FROM `local_message` AS m
WHERE m.`state` = 5 AND INSTR(CAST(m.`fail_reason` AS BINARY), ?) = 1
ORDER BY m.`id` LIMIT 500;
