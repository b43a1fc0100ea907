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
-- Multi-row VALUES. The state of the first row stands in front of everything that a user gave and
-- carries the check of the session (see checked). That costs about 16 us a statement on MariaDB
-- 10.11 and 9 to 18 on MySQL, where a lone INSERT takes 65 and 104; a sub-query of two rows in its
-- place made it 1.5 to 2 times as long.
INSERT INTO `local_message` (`state`, `message_type`, `message_key`, `topic`, `message_body`, `headers`, `content_type`, `ordering_key`, `created_by`, `updated_by`, `gmt_create`, `gmt_modified`)
  VALUES (CASE WHEN ROW_COUNT() = 0 THEN EXP(999) WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */
    WHEN NOT (FIND_IN_SET('STRICT_TRANS_TABLES', @@sql_mode) OR FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode)) THEN EXP(996) ELSE 0 END, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3));

-- seeIdentities
-- A consistent read: no lock. In REPEATABLE READ on MySQL 8 and 9 an INSERT that fails on a
-- duplicate holds up every other INSERT into the table until its transaction ends, so a duplicate
-- that is to be ignored must not get as far as the INSERT. By a condition that is false before any
-- row is looked at, it reads nothing where it would gain nothing or do harm: MariaDB, where a
-- failed INSERT holds up its neighbours only, and a read view made here could fail later statements
-- of the user (innodb_snapshot_isolation); SERIALIZABLE, where a plain read locks, gaps as well;
-- READ COMMITTED, where nobody is held up. The other statements come after an INSERT; this one
-- comes first, and so checks the session like it.
SELECT m.`message_type` AS messagetype, m.`message_key` AS messagekey FROM `local_message` AS m
  WHERE CASE WHEN ROW_COUNT() = 0 THEN EXP(999) WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ ELSE TRUE END /*M! AND FALSE */ /*!80000 AND @@transaction_isolation = 'REPEATABLE-READ' */ AND ((m.`message_type` = ? AND m.`message_key` = ?));

-- readRoom
SELECT c.TABLE_SCHEMA AS databasename, c.COLUMN_NAME AS columnname, c.CHARACTER_MAXIMUM_LENGTH AS characters, c.CHARACTER_OCTET_LENGTH AS bytes,
    c.CHARACTER_SET_NAME AS charsetname, c.DATA_TYPE AS datatype
  FROM information_schema.COLUMNS AS c
  WHERE CASE WHEN FALSE THEN FALSE WHEN ROW_COUNT() = 0 THEN EXP(999) ELSE TRUE END AND c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = ?;

-- findIdentities
-- Locks the rows in share mode against removal: so it reads what is committed now, also in a
-- REPEATABLE READ transaction that began before. One SELECT for each, so that each locks its own
-- row: with OR, three rows of a small table were read as the whole index, every gap of it was
-- locked, and nobody else could enqueue. 1,000 take 45 ms. An identity that is not there leaves the
-- lock of a gap.
(SELECT m.`message_type` AS messagetype, m.`message_key` AS messagekey FROM `local_message` AS m WHERE CASE WHEN FALSE THEN FALSE WHEN ROW_COUNT() = 0 THEN EXP(999) ELSE TRUE END AND m.`message_type` = ? AND m.`message_key` = ? LOCK IN SHARE MODE);

-- deleteIdentities
-- Locks rows that this transaction has inserted.
DELETE m FROM `local_message` AS m WHERE /*M! (@@in_transaction = 1 OR @@autocommit = 0) AND */ CASE WHEN FALSE THEN FALSE WHEN ROW_COUNT() = 0 THEN EXP(999) ELSE TRUE END AND ((m.`message_type` = ? AND m.`message_key` = ?));

-- =================================================================================================
-- Holding shards

-- ensureShards
-- INSERT … SELECT of what is missing; two that run at once meet at the primary key, and ON
-- DUPLICATE KEY keeps what is there.
INSERT INTO `local_message_shard` (table_name, shard)
  SELECT ?, every.shard FROM (SELECT 0 AS shard UNION ALL SELECT 1 AS shard UNION ALL SELECT 2 AS shard UNION ALL SELECT 3 AS shard UNION ALL SELECT 4 AS shard UNION ALL SELECT 5 AS shard UNION ALL SELECT 6 AS shard UNION ALL SELECT 7 AS shard UNION ALL SELECT 8 AS shard UNION ALL SELECT 9 AS shard UNION ALL SELECT 10 AS shard UNION ALL SELECT 11 AS shard UNION ALL SELECT 12 AS shard UNION ALL SELECT 13 AS shard UNION ALL SELECT 14 AS shard UNION ALL SELECT 15 AS shard) AS every
  WHERE NOT EXISTS (SELECT 1 FROM `local_message_shard` AS s WHERE s.table_name = ? AND s.shard = every.shard)
  ON DUPLICATE KEY UPDATE epoch = epoch;

-- reportInstance
-- Which relays run, and what they must not send. Each statement that writes locks the rows of the
-- registry that it writes, one or those of the dead, until its own end; no other statement does.
INSERT INTO `local_message_relay` (table_name, owner, label, seen_at) VALUES (?, ?, ?, UTC_TIMESTAMP(3))
  ON DUPLICATE KEY UPDATE label = VALUES(label), seen_at = UTC_TIMESTAMP(3);

-- writeReport
-- Which relays run, and what they must not send. Each statement that writes locks the rows of the
-- registry that it writes, one or those of the dead, until its own end; no other statement does.
UPDATE `local_message_relay` SET report = ?, reported_at = UTC_TIMESTAMP(3) WHERE table_name = ? AND owner = ?;

-- readReports
-- Rows: owner, label, silent_ms (since its last sign of life), report, report_age_ms (NULL: none).
SELECT owner, label, TIMESTAMPDIFF(MICROSECOND, seen_at, UTC_TIMESTAMP(3)) DIV 1000 AS silent_ms, report,
    TIMESTAMPDIFF(MICROSECOND, reported_at, UTC_TIMESTAMP(3)) DIV 1000 AS report_age_ms
  FROM `local_message_relay` WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') ORDER BY table_name, owner;

-- renew
-- Locks the lease rows that it writes; a takeover of one of them comes before it or after it, and
-- changes the epoch.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.lease_until = UTC_TIMESTAMP(3) + INTERVAL 10000 * 1000 MICROSECOND, s.lease_ms = 10000
  WHERE s.owner = ? AND s.epoch = j.epoch;

-- readLeases
-- Rows: shard, owner, epoch, lease_until (text), lease_ms.
SELECT shard, owner, epoch, CAST(lease_until AS CHAR) AS lease_until, lease_ms FROM `local_message_shard` WHERE table_name = ? ORDER BY shard;

-- readInstances
-- Both bounds: after the server's clock was set back, a dead instance would else stay alive until
-- the clock has caught up (rule: hand-over).
SELECT owner, label, seen_at BETWEEN UTC_TIMESTAMP(3) - INTERVAL 10000 * 1000 MICROSECOND
    AND UTC_TIMESTAMP(3) + INTERVAL 10000 * 1000 MICROSECOND AS alive
  FROM `local_message_relay` WHERE table_name = ? ORDER BY owner;

-- readSuspensions
-- Rows: scope, value, reason, author, ends_in_ms. Those that have ended are left out.
SELECT scope, value, reason, author, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), ends_at) DIV 1000 AS ends_in_ms
  FROM `local_message_suspension` WHERE table_name = ? AND (ends_at IS NULL OR ends_at > UTC_TIMESTAMP(3)) ORDER BY scope, value;

-- take
-- Exactly as observed, or not at all: two takers of one free shard write the same row, and the
-- second finds another epoch. It waits for every fenced statement of the old owner, which hold the
-- lease row in share mode; those that come later find the new epoch.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
      shard INT PATH '$[0]', epoch BIGINT PATH '$[1]', owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$[2]',
      lease_until DATETIME(3) PATH '$[3]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.owner = ?, s.epoch = s.epoch + 1, s.lease_until = UTC_TIMESTAMP(3) + INTERVAL 10000 * 1000 MICROSECOND, s.lease_ms = 10000
  WHERE s.epoch = j.epoch AND s.owner <=> j.owner AND s.lease_until = j.lease_until;

-- recoverShards
-- Second statement of a takeover: it begins after the lease rows are ours, so it sees every claim
-- that committed before (as one statement with the first it would miss them, rule: takeover-fence).
-- A range of the index on state; the rows in `sending` are those in flight, hundreds at most. SKIP
-- LOCKED: a plain UPDATE may walk the table and then waits for every row that a user has inserted
-- and not committed yet. A row in `sending` that somebody holds is left for the sweep of rule:
-- watched-sending.
UPDATE (SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
    WHERE m.`state` = 1 AND CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 IN (0)
    LIMIT 1000000 FOR UPDATE SKIP LOCKED) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`state` = 0;

-- recoverListed
-- Locks the listed rows that nobody else holds; the lease rows, with the lists, are this
-- transaction's already. A row that a user holds is passed over, and this one delivery of it stays
-- uncounted: the list cannot keep it, because our first batch replaces the list (rule:
-- listed-in-flight). That is safe: a late settle of the old owner fails at the epoch, and the limit
-- on crashes (rule: crash-counting) is reached one crash later.
UPDATE (SELECT m.`id` AS id FROM (SELECT ids.id AS id FROM `local_message_shard` AS s
      STRAIGHT_JOIN JSON_TABLE(COALESCE(s.in_flight, '[]'), '$[*]' COLUMNS (id BIGINT PATH '$')) AS ids
      WHERE s.table_name = ? AND s.shard IN (0) LIMIT 1000000) AS listed
    STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = listed.id
    WHERE m.`state` = 0
    LIMIT 1000000 FOR UPDATE SKIP LOCKED) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`delivery_count` = m.`delivery_count` + 1, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1;

-- clearListed
-- Of a takeover, whose transaction has these lease rows locked.
UPDATE `local_message_shard` SET in_flight = NULL WHERE table_name = ? AND shard IN (0);

-- release
-- Another relay may take the shard right after it; the epoch grows when one does.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.owner = NULL, s.in_flight = NULL, s.lease_until = UTC_TIMESTAMP(3)
  WHERE s.owner = ? AND s.epoch = j.epoch;

-- removeInstance
-- Which relays run, and what they must not send. Each statement that writes locks the rows of the
-- registry that it writes, one or those of the dead, until its own end; no other statement does.
DELETE FROM `local_message_relay` WHERE table_name = ? AND owner = ?;

-- forgetInstances
-- Which relays run, and what they must not send. Each statement that writes locks the rows of the
-- registry that it writes, one or those of the dead, until its own end; no other statement does.
DELETE FROM `local_message_relay` WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') AND seen_at < UTC_TIMESTAMP(3) - INTERVAL 24 HOUR;

-- =================================================================================================
-- Finding what waits

-- scan
-- Two branches off one index, (state, next_retry_at) and the id that InnoDB adds: due rows in the
-- order of their time, immediate rows in the order of their ids. IGNORE INDEX (PRIMARY) because the
-- optimizer otherwise walks the primary key for ORDER BY id, through every finished row, when its
-- statistics say that waiting rows are many. Each branch examines LIMIT rows and no more (rule:
-- bounded-scan); a row of a shard that is not asked for comes back without its body. A program that
-- inserts with plain SQL may have set deliver_at alone; such a row is waiting, and is left out of
-- the immediate branch until it is due.
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
-- The same two branches for each topic, off an index on the topics of waiting rows, or one that
-- begins with (state, topic). They find ids alone, in the index alone, and the rows are read by id:
-- a text with all fields in 40 branches would take longer to parse than to run. Topics stand as
-- constants, one branch each; a join with a list of topics read the whole index.
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
-- MIN of a range of (state, topic) is one look into the index.
SELECT MIN(m.`waiting_topic`) AS topic FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`waiting_topic` > ?;

-- readBodies
-- Aliases: id message_body.
SELECT m.`id` AS id, m.`message_body` AS message_body FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100);

-- keyQueues
-- For each key the rows that can stand before its candidates (rule: key-order): unfinished, id <=
-- the key's largest candidate. By the keys of unfinished rows where the table has a column for
-- them, else by (ordering_key, state).
--
-- Few keys: ranges that touch exactly those rows, however long the queue of the key is. Many keys:
-- the optimizer takes longer over the ranges than the read takes (333 keys, MariaDB 10.11: 41 ms
-- against 35; MySQL 9: 129 against 53), so they come as a JSON_TABLE; that reads every entry of the
-- key and skips those behind up_to_id.
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
-- One multi-table UPDATE. It locks the lease rows it reads in share mode, which a sub-query would
-- not (rule: takeover-fence): a takeover waits for this statement, or this statement waits for the
-- takeover and then finds another owner and changes nothing. Message rows are locked in id order.
-- Fixed-size columns only, so that no row moves in its page. If we die right after it, the rows are
-- `sending` and belong to the next owner of their shard, who recovers them in his takeover.
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
-- Fenced like the claim; the lease rows are the rows that it writes. If we die right after it, the
-- next owner finds the ids there (rule: listed-in-flight).
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]', ids MEDIUMTEXT PATH '$[2]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.in_flight = j.ids
  WHERE s.owner = ? AND s.epoch = j.epoch;

-- readHeld
-- Alias: shard. Held shards at their epochs (which of the lists were written).
SELECT s.shard AS shard
  FROM JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s ON s.table_name = ? AND s.shard = j.shard
  WHERE s.owner = ? AND s.epoch = j.epoch;

-- =================================================================================================
-- Writing what came of it

-- settleSent
-- A row that is `consumed` already stays so and only learns its receipt. Its lock_version has moved
-- on, so the claim is told by delivery_count there. The state is written last: assignments may see
-- what stands before them. If we die before it, the message is sent again, with the same identity;
-- right after it, nothing is missing.
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
-- A DELETE of several tables locks the lease rows that it reads in share mode, as the UPDATE does.
-- A row that a confirmation has overtaken is left to housekeeping. If we die before it, the message
-- is sent again, with the same identity; right after it, nothing is missing.
DELETE m FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  WHERE m.`state` = 1 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- settleOther
-- Back to `pending`, or `failed`. A return that was not an attempt (retry_delta = 0) leaves
-- last_retry_at alone.
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
-- Rows as they are now. Aliases: id state delivery_count lock_version.
SELECT m.`id` AS id, m.`state` AS state, m.`delivery_count` AS delivery_count, m.`lock_version` AS lock_version, ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) AS identity_hash
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id;

-- lockFreeRows
-- Exclusive locks on rows that exist, one by one; whoever waits for them waits for this short
-- transaction.
SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100) FOR UPDATE SKIP LOCKED;

-- =================================================================================================
-- What consumers report

-- confirmIdentities
-- Locks the rows in the order of their identities, which all confirmations keep. A settle takes
-- them by id: where the two meet in another order, one is told of a deadlock and does it again. If
-- we die right after it, the transaction rolls back, and the consumer confirms again.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE JSON_TABLE(?, '$[*]' COLUMNS (type VARCHAR(64) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]', name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (uk_type_key)
    ON m.`message_type` = j.type AND m.`message_key` = j.name
  SET m.`consumed_at` = UTC_TIMESTAMP(3), m.`next_retry_at` = NULL, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`state` = 4
  WHERE CASE WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */ ELSE TRUE END AND m.`state` IN (2, 1, 0, 3, 5);

-- lockIdentities
-- Holds the rows, in the order of confirmIdentities, until the transaction ends: another consumer
-- of one of them waits, and a relay's settle too. If we die right after it, nothing has changed.
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
-- The rows are locked by lockIdentities.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`consumed_at` = UTC_TIMESTAMP(3), m.`next_retry_at` = NULL, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`state` = 4
  WHERE m.`state` IN (2, 1, 0, 3, 5);

-- confirmArchived
-- Locked by lockIdentities. Nothing else changes a row of the archive.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE /*+ SET_VAR(sql_safe_updates = 0) */ `local_message_archive` AS m
  SET m.`consumed_at` = UTC_TIMESTAMP(3), m.`next_retry_at` = NULL, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`state` = 4
  WHERE ((m.`message_type` = ? AND m.`message_key` = ?)) AND m.`state` IN (2, 1, 0, 3, 5);

-- touchRows
-- Locked by lockIdentities.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1;

-- reportFailed
-- Locked by lockIdentities.
/*M! SET STATEMENT sql_safe_updates = 0 FOR */ UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', reason VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[1]')) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = j.reason, m.`next_retry_at` = UTC_TIMESTAMP(3), m.`gmt_modified` = UTC_TIMESTAMP(3), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1
  WHERE m.`state` = 2;

-- addConfirmations
-- Adds rows of messages that lockIdentities holds; nobody else adds to the same ones.
INSERT INTO `local_message_confirmation` (table_name, message, consumer, confirmed_at)
  VALUES (?, ?, ?, UTC_TIMESTAMP(3))
  ON DUPLICATE KEY UPDATE consumer = VALUES(consumer);

-- readConfirmations
-- A locking read sees what is committed; their messages are locked, so it waits for nobody.
SELECT CAST(c.message AS CHAR) AS id, c.consumer AS consumer
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message_confirmation` AS c FORCE INDEX (PRIMARY) ON c.table_name = ? AND c.message = j.id
  FOR UPDATE /*!80000 OF c */;

-- forgetConfirmations
-- Locks entries in the order of their age; a confirmation that adds one has a younger one. If we
-- die right after it, those are gone that were to go.
DELETE FROM `local_message_confirmation` WHERE table_name = ? AND confirmed_at <= UTC_TIMESTAMP(3) - INTERVAL ? * 1000 MICROSECOND
  ORDER BY confirmed_at LIMIT 500;

-- countUnknown
-- A plain read: two that count at once may both add, and pass the limit by a call each.
SELECT COUNT(*) AS kept FROM (SELECT 1 FROM `local_message_unmatched` WHERE table_name = ? LIMIT 10000) AS u;

-- keepUnknown
-- Locks the entries of these identities, in the order of the rows, which all calls keep. If we die
-- right after it, nothing is kept, and the confirmations stand: they have committed before.
INSERT INTO `local_message_unmatched` (table_name, message_type, message_key, consumer, reason, times, first_at, last_at)
  SELECT ?, j.type, j.name, j.said_by, j.why, j.said, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)
  FROM JSON_TABLE(?, '$[*]' COLUMNS (type VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[0]', name VARCHAR(128) CHARACTER SET utf8mb4 PATH '$[1]', said_by VARCHAR(128) CHARACTER SET utf8mb4 PATH '$[2]', why VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[3]' NULL ON EMPTY, said INT PATH '$[4]')) AS j
  WHERE CASE WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997) /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */ /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */ ELSE TRUE END
  ON DUPLICATE KEY UPDATE reason = VALUES(reason), times = times + VALUES(times), last_at = VALUES(last_at);

-- forgetUnknown
-- Locks entries in the order of their age; one that is said again meanwhile has a younger one. If
-- we die right after it, those are gone that were to go.
DELETE FROM `local_message_unmatched` WHERE table_name = ? AND last_at <= UTC_TIMESTAMP(3) - INTERVAL ? * 1000 MICROSECOND
  ORDER BY last_at LIMIT 500;

-- =================================================================================================
-- Not now

-- setBehind
-- Locks, before the join begins: the heads that still stand there and nobody holds, then the
-- followers that nobody holds; then the lease rows in share mode, as the claim does. The head's
-- lock is what makes it safe: a settle of the head either has committed, then it is not unfinished
-- any more, or holds it, then it is passed over here, or waits for us, and finds the followers when
-- it brings them back. A plain read would see the head as it was before a settle that commits a
-- moment later, and that settle would not see our followers: they would stand behind nobody. LIMIT
-- keeps the optimizer from merging the reads into the join, where they would wait. If we die right
-- after it, they are brought back by whoever settles the head.
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
-- Locks the rows that it changes, and passes over what others hold. Not fenced: whoever settles or
-- moves a head brings its followers back, and to do it twice changes nothing.
UPDATE (SELECT c.id FROM (SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
    WHERE m.`state` = 0 AND m.`next_retry_at` IN (?)
    ORDER BY m.`next_retry_at`, m.`id` LIMIT NaN OFFSET NaN FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3);

-- nextBehind
-- MIN of a range of (state, next_retry_at) is one look into the index. As it stands, in no zone.
SELECT LEFT(DATE_FORMAT(MIN(m.`next_retry_at`), '%Y-%m-%dT%H:%i:%s.%f'), 23) AS instant
  FROM `local_message` AS m IGNORE INDEX (PRIMARY) WHERE m.`state` = 0 AND m.`next_retry_at` > ?;

-- park
-- No transition: the row stays pending and is looked at later. Its time is never set before
-- deliver_at.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = GREATEST(COALESCE(m.`deliver_at`, UTC_TIMESTAMP(3) + INTERVAL (5000) * 1000 MICROSECOND), UTC_TIMESTAMP(3) + INTERVAL (5000) * 1000 MICROSECOND), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` = 0 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- resetBackoff
-- Rows of the topic that wait for a later time come forward, in id order, `stepMs` apart; of failed
-- ones their slow retry does. Only rows that wait longer than the whole ramp, so that a second call
-- goes on where the first ended. Rows whose own delay is still ahead stay (rule:
-- delay-is-not-retry); without deliver_at a row that never failed is taken for delayed. Rows that
-- are set behind stay.
UPDATE (SELECT c.id, ROW_NUMBER() OVER (ORDER BY c.id) - 1 + NaN AS place FROM (
    SELECT m.`id` AS id FROM `local_message` AS m
    WHERE m.`state` IN (0, 3) AND m.`next_retry_at` > UTC_TIMESTAMP(3) + INTERVAL (500) * 1000 MICROSECOND AND m.`next_retry_at` < '3000-01-01 00:00:00.000'
      AND m.`topic` = ? AND (m.`deliver_at` IS NULL OR m.`deliver_at` <= UTC_TIMESTAMP(3))
    ORDER BY m.`id` LIMIT NaN OFFSET NaN FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = UTC_TIMESTAMP(3) + INTERVAL (j.place * 1) * 1000 MICROSECOND, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` IN (0, 3);

-- readClock
-- For a clock that was set back. Locks rows that nobody holds, in id order; no relay works on them,
-- because they are not due. If we die right after it: those rows are due, and the others are found
-- by nobody until their time comes.
SELECT TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000 AS now_ms;

-- shortenWaits
-- For a clock that was set back. Locks rows that nobody holds, in id order; no relay works on them,
-- because they are not due. If we die right after it: those rows are due, and the others are found
-- by nobody until their time comes.
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
-- Changes of rows that a relay has scanned or claimed: fenced, token compared. They lock those of
-- the message rows that nobody holds, before the join begins (LIMIT keeps the optimizer from
-- merging it into the join, which would wait): one that a user holds keeps no other waiting, and is
-- met again. The lease rows are locked in share mode as by the claim. Nobody but us may claim the
-- rows; a person's change since the scan shows in the token. If we die right after it, each row is
-- either as it was or as decided.
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
-- Changes of rows that a relay has scanned or claimed: fenced, token compared. They lock those of
-- the message rows that nobody holds, before the join begins (LIMIT keeps the optimizer from
-- merging it into the join, which would wait): one that a user holds keeps no other waiting, and is
-- met again. The lease rows are locked in share mode as by the claim. Nobody but us may claim the
-- rows; a person's change since the scan shows in the token. If we die right after it, each row is
-- either as it was or as decided.
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
-- Fenced like the claim: a relay that has lost the shard returns nothing, its successor has done so
-- already.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]')) AS j
  STRAIGHT_JOIN `local_message_shard` AS s
    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch
  STRAIGHT_JOIN (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`state` = 0
  WHERE m.`state` = 1 AND COALESCE(m.`lock_version`, 0) = j.token AND ((COALESCE(CRC32(m.`message_type`), 0) << 31) ^ COALESCE(CRC32(m.`message_key`), 0)) = j.identity_hash;

-- listTimed
-- A range of (state, next_retry_at) for each state; each reads at most LIMIT rows.
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
-- What each decision writes. From-states come from the table of transitions. Locks the rows in id
-- order; a person or a consumer who changed one since it was listed has moved its token, and wins.
-- If we die right after it, every row is either as decided or still due.
--
-- `skipLocked`: locks what nobody holds before the join begins, and changes that. A row that a user
-- holds is still due and comes again. LIMIT keeps the optimizer from merging it into the join,
-- which would wait.
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
-- NOT IN of constants is read as the ranges between them: an unknown state is found without looking
-- at the known ones. The other is a range of the primary key, empty in a healthy table.
(SELECT m.`id` AS id FROM `local_message` AS m WHERE (m.`state` NOT IN (0, 1, 2, 3, 4, 5) OR m.`state` IS NULL) LIMIT 500)
UNION ALL
(SELECT m.`id` AS id FROM `local_message` AS m WHERE m.`id` < 1 AND m.`state` = 0 LIMIT 500);

-- failUnknownStates
-- SKIP LOCKED, because an UPDATE over a condition waits for every row it meets that a user has
-- inserted and not committed yet, whatever its state.
UPDATE (SELECT c.id FROM (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY)
    WHERE m.`id` IN (100) AND (m.`state` NOT IN (0, 1, 2, 3, 4, 5) OR m.`state` IS NULL)
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = CONCAT('UNKNOWN_STATE: the column held ', COALESCE(m.`state`, 'NULL'), '; retry the message, or correct the program that wrote it'),
    m.`next_retry_at` = NULL, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`state` = 3;

-- failUnreached
-- Locks what nobody holds of the rows of a condition, and fails them. If we die right after it: a
-- person sees why.
UPDATE (SELECT c.id FROM (SELECT m.`id` AS id FROM `local_message` AS m FORCE INDEX (PRIMARY)
    WHERE m.`id` IN (100) AND m.`id` < 1 AND m.`state` = 0
    LIMIT 1 FOR UPDATE SKIP LOCKED) AS c) AS j
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = 'ID_BELOW_ONE: ids begin at 1, and no relay looks below; insert the message again with an id of the column itself',
    m.`next_retry_at` = NULL, m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3), m.`state` = 3;

-- gauges
-- Unfinished rows only, and a bounded number of each state: more is "many", and a gauge must not
-- cost what a drain costs. Of the failed ones the newest, walked from the end of the index: behind
-- 10,000 old ones those of another topic would not be seen.
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
-- Looks at the next LIMIT rows of (state, NULL) by id and locks those of them that are old enough,
-- so its work is bounded also where none is. SKIP LOCKED: a row that somebody holds is left for the
-- next time. next_retry_at NULL is checked again under the lock.
SELECT m.`id` AS id
  FROM (SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
    WHERE m.`state` = 2 AND m.`next_retry_at` IS NULL AND m.`id` > ? ORDER BY m.`id` LIMIT 500) AS c
  STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = c.id
  WHERE m.`state` = 2 AND m.`next_retry_at` IS NULL
    AND COALESCE(m.`sent_at`, m.`gmt_modified`) <= UTC_TIMESTAMP(3) - INTERVAL ? * 1000 MICROSECOND
  FOR UPDATE SKIP LOCKED;

-- passFinished
-- Reads `rows` entries of the index, and no row; no lock.
SELECT m.`id` AS id FROM `local_message` AS m IGNORE INDEX (PRIMARY)
  WHERE m.`state` = 2 AND m.`next_retry_at` IS NULL AND m.`id` > ? ORDER BY m.`id` LIMIT 1 OFFSET 499;

-- copyToArchive
-- The rows are locked by lockFinished or lockRows in the same transaction.
INSERT INTO `local_message_archive` (`id`, `message_type`, `message_key`, `topic`, `message_body`, `state`, `retry_count`, `next_retry_at`, `fail_reason`, `gmt_create`, `gmt_modified`, `last_retry_at`, `headers`, `content_type`, `ordering_key`, `delivery_count`, `deliver_at`, `message_id`, `lock_version`, `sent_at`, `consumed_at`, `created_by`, `updated_by`, archived_at)
  SELECT m.`id`, m.`message_type`, m.`message_key`, m.`topic`, m.`message_body`, m.`state`, m.`retry_count`, m.`next_retry_at`, m.`fail_reason`, m.`gmt_create`, m.`gmt_modified`, m.`last_retry_at`, m.`headers`, m.`content_type`, m.`ordering_key`, m.`delivery_count`, m.`deliver_at`, m.`message_id`, m.`lock_version`, m.`sent_at`, m.`consumed_at`, m.`created_by`, m.`updated_by`, UTC_TIMESTAMP(3)
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id;

-- deleteRows
-- As copyToArchive; what was copied is what is deleted.
DELETE m FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id;

-- purgeArchive
-- Locks rows of the archive, in the order of their age; nothing else writes old ones.
DELETE FROM `local_message_archive` WHERE archived_at <= UTC_TIMESTAMP(3) - INTERVAL ? * 1000 MICROSECOND ORDER BY archived_at LIMIT 500;

-- =================================================================================================
-- What people do

-- find
-- Aliases: id lock_version, of the archive also archived_at as text. In the order of ids, and rows
-- of one id in that of archived_at.
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
-- Alias: id, of the last of so many rows in this direction; no row when there are fewer. Walks the
-- primary key.
SELECT CAST(m.`id` AS CHAR) AS id FROM `local_message` AS m FORCE INDEX (PRIMARY)
WHERE m.`id` <= 100000
ORDER BY m.`id` DESC LIMIT 1 OFFSET 19999;

-- readMessages
-- The aliases of `MessageSummary` in snake_case, `state` raw; with `bodies` also message_body and
-- headers, of the archive also archived_at as `find` gives it. In any order.
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
-- Alias: message_type, the next one behind this; NULL for none. One look into the unique key.
SELECT MIN(m.`message_type`) AS message_type FROM `local_message` AS m WHERE m.`message_type` > ?;

-- idBounds
-- Aliases: first_id last_id, NULL in an empty table. As one look-up SQLite walks the table.
SELECT (SELECT CAST(MIN(m.`id`) AS CHAR) FROM `local_message` AS m) AS first_id, (SELECT CAST(MAX(m.`id`) AS CHAR) FROM `local_message` AS m) AS last_id;

-- createdFrom
-- Aliases: id gmt_create, of the first row from each of these ids on, where there is one; of the
-- archive the first two, which may have the same id.
(SELECT CAST(m.`id` AS CHAR) AS id, CONCAT(LEFT(DATE_FORMAT(m.`gmt_create`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS gmt_create
  FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` >= 100 ORDER BY m.`id` LIMIT 1)
UNION ALL
(SELECT CAST(m.`id` AS CHAR) AS id, CONCAT(LEFT(DATE_FORMAT(m.`gmt_create`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS gmt_create
  FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` >= 200 ORDER BY m.`id` LIMIT 1);

-- createdOfLastArchived
-- Aliases: id gmt_create, of the rows that were archived last.
SELECT CAST(m.`id` AS CHAR) AS id, CONCAT(LEFT(DATE_FORMAT(m.`gmt_create`, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS gmt_create
FROM `local_message_archive` AS m FORCE INDEX (idx_archived_at) ORDER BY m.archived_at DESC LIMIT 64;

-- placeOf
-- Aliases: shard, clock (ISO text), due_in_ms, deliver_in_ms (NULL: there is no such time).
SELECT CRC32(CONVERT(COALESCE(m.`ordering_key`, m.`message_key`, '') USING utf8mb4)) % 16 AS shard, CONCAT(LEFT(DATE_FORMAT(UTC_TIMESTAMP(3), '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS clock, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), m.`next_retry_at`) DIV 1000 AS due_in_ms, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), m.`deliver_at`) DIV 1000 AS deliver_in_ms
FROM `local_message` AS m WHERE m.`id` = ?;

-- countWaiting
-- Aliases: kind count next_in_ms, of pending messages: `backoff`, `delayed`, `due` or `behind`; at
-- most about `limit` of each; a kind may come in several rows. Ranges of the index on the state and
-- the time; of those that wait also the rows.
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
-- that may have changed this message: `ids` says whether they have.
SELECT CONCAT(LEFT(DATE_FORMAT(a.made_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS made_at, a.author AS author, a.action AS action, a.reason AS reason, a.ids AS ids, a.details AS details
FROM `local_message_audit` AS a WHERE a.table_name = 'local_message' AND a.first_id <= ? AND a.last_id >= ? ORDER BY a.id DESC LIMIT 100;

-- countStates
-- Aliases: state count. At most about `limit` of each; a state may come in several rows. With
-- `toSort` only those that a page of these states has to sort, where an index has the others in the
-- order of ids. Reads indexes and no row.
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
-- Aliases: id state lock_version fail_reason. Locks the rows of these ids until the change that
-- follows in the same transaction; in id order, like everything else that locks several messages.
-- By the primary key: in a table of a few rows, or with old statistics, MySQL walks the whole table
-- instead, and then locks and waits for rows that are not meant.
SELECT CAST(m.`id` AS CHAR) AS id, m.`state` AS state, CAST(m.`lock_version` AS CHAR) AS lock_version, m.`fail_reason` AS fail_reason
FROM `local_message` AS m FORCE INDEX (PRIMARY) WHERE m.`id` IN (100) ORDER BY m.`id` FOR UPDATE;

-- recordChange
-- Adds a row of its own to the audit; commits, or does not, with the change that it tells of.
INSERT INTO `local_message_audit` (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
VALUES ('local_message', UTC_TIMESTAMP(3), ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?);

-- operatorRetry
-- The rows are locked by lockRows already, here and in those that follow; the states are looked at
-- once more because a statement must not depend on another's care.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`retry_count` = 0, m.`delivery_count` = 0, m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`fail_reason` = IF(LEFT(m.`fail_reason`, 18) = 'suspended by rule ', NULL, m.`fail_reason`), m.`updated_by` = LEFT(?, 64), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3),
    m.`state` = 0
  WHERE m.`state` IN (3, 2);

-- bringForward
-- As operatorRetry: locked already.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`next_retry_at` = NULL, m.`updated_by` = LEFT(?, 64), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3)
  WHERE m.`state` = 0 AND m.`next_retry_at` > UTC_TIMESTAMP(3) AND m.`next_retry_at` < '3000-01-01 00:00:00.000' AND (m.`deliver_at` IS NULL OR m.`deliver_at` <= UTC_TIMESTAMP(3));

-- suspendRows
-- As operatorRetry: locked already.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = IF(LEFT(m.`fail_reason`, 18) = 'suspended by rule ', NULL, m.`fail_reason`), m.`next_retry_at` = NULL, m.`updated_by` = LEFT(?, 64), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3),
    m.`state` = 5
  WHERE m.`state` IN (0, 3);

-- resumeRows
-- As operatorRetry: locked already.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j STRAIGHT_JOIN `local_message` AS m FORCE INDEX (PRIMARY) ON m.`id` = j.id
  SET m.`fail_reason` = IF(LEFT(m.`fail_reason`, 18) = 'suspended by rule ', NULL, m.`fail_reason`), m.`next_retry_at` = IF(m.`deliver_at` > UTC_TIMESTAMP(3), m.`deliver_at`, NULL), m.`updated_by` = LEFT(?, 64), m.`lock_version` = COALESCE(m.`lock_version`, 0) + 1, m.`gmt_modified` = UTC_TIMESTAMP(3),
    m.`state` = 0
  WHERE m.`state` IN (5);

-- putSuspension
-- Locks its one rule. Relays read it at their next heartbeat.
INSERT INTO `local_message_suspension` (table_name, scope, value, reason, author, ends_at)
  VALUES (?, ?, ?, LEFT(?, 512), LEFT(?, 64), NULL)
  ON DUPLICATE KEY UPDATE reason = VALUES(reason), author = VALUES(author), ends_at = VALUES(ends_at);

-- deleteSuspension
-- Locks its one rule; the messages under it are resumed by the statements after it.
DELETE FROM `local_message_suspension` WHERE table_name = 'local_message' AND scope = ? AND value = ?;

-- listSuspendedBy
-- Aliases: id lock_version. Rows suspended by this rule, told by the beginning of fail_reason.
SELECT CAST(m.`id` AS CHAR) AS id, CAST(m.`lock_version` AS CHAR) AS lock_version FROM `local_message` AS m
WHERE m.`state` = 5 AND INSTR(CAST(m.`fail_reason` AS BINARY), ?) = 1
ORDER BY m.`id` LIMIT 500;
