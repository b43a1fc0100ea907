-- Every statement of the default layout as the server gets it, in the order of a message's way.
-- Each stands under the comment of its builder, which says what it locks and what happens if we die
-- right after it. Made by tools/sql-as-it-runs.mjs; see src/databases/ for the builders and docs/
-- for the rules.
--
-- SQLite has one write lock for the whole file: a statement that writes has it until its commit,
-- and no statement locks a row. In WAL mode a reader waits for nobody.

-- =================================================================================================
-- Writing a message, in the user's transaction

-- insert
-- One text with one plain `?` for any number of messages, which every driver and ORM can bind. Ids
-- follow the array order. A duplicate is left out of the result, and the transaction stays usable.
-- Without a commit nothing was written.
INSERT INTO local_message (message_type, message_key, topic, message_body, headers, content_type, ordering_key, state, deliver_at, next_retry_at, created_by, updated_by, gmt_create, gmt_modified)
SELECT json_extract(value, '$[0]'),
  json_extract(value, '$[1]'),
  json_extract(value, '$[2]'),
  json_extract(value, '$[3]'),
  json_extract(value, '$[4]'),
  json_extract(value, '$[5]'),
  json_extract(value, '$[6]'),
  0,
  COALESCE(strftime('%Y-%m-%d %H:%M:%f', json_extract(value, '$[8]') / 1000.0, 'unixepoch'), strftime('%Y-%m-%d %H:%M:%f', 'now', (json_extract(value, '$[7]') / 1000.0) || ' seconds')),
  COALESCE(strftime('%Y-%m-%d %H:%M:%f', json_extract(value, '$[8]') / 1000.0, 'unixepoch'), strftime('%Y-%m-%d %H:%M:%f', 'now', (json_extract(value, '$[7]') / 1000.0) || ' seconds')),
  json_extract(value, '$[9]'),
  json_extract(value, '$[9]'),
  strftime('%Y-%m-%d %H:%M:%f', 'now'),
  strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM json_each(?)
WHERE true
ON CONFLICT (message_type, message_key) DO NOTHING
RETURNING message_type AS messagetype, message_key AS messagekey;

-- findIdentities
-- Rows: messagetype, messagekey as stored, of those identities, by the column's collation. A
-- locking read, so it sees the rows that failed the insert. With a mark, returns an additional row
-- without an identity in another transaction.
SELECT m.message_type AS messagetype, m.message_key AS messagekey
FROM (SELECT json_extract(value, '$[0]') AS type, json_extract(value, '$[1]') AS key FROM json_each(?)) AS wanted
JOIN local_message AS m ON m.message_type = wanted.type AND m.message_key = wanted.key;

-- deleteIdentities
-- Deletes these identities, to undo a partly inserted call.
DELETE FROM local_message WHERE (message_type, message_key) IN (SELECT json_extract(value, '$[0]') AS type, json_extract(value, '$[1]') AS key FROM json_each(?));

-- =================================================================================================
-- Holding shards

-- ensureShards
-- INSERT of the missing shard rows; concurrent calls agree.
INSERT INTO local_message_shard (table_name, shard) VALUES ('local_message', 0) ON CONFLICT (table_name, shard) DO NOTHING;

-- reportInstance
INSERT INTO local_message_relay (table_name, owner, label, seen_at) VALUES ('local_message', ?, ?, strftime('%Y-%m-%d %H:%M:%f', 'now'))
ON CONFLICT (table_name, owner) DO UPDATE SET label = excluded.label, seen_at = excluded.seen_at;

-- writeReport
-- The instance's own report, as JSON. No effect before its first heartbeat.
UPDATE local_message_relay SET report = ?, reported_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE table_name = 'local_message' AND owner = ?;

-- readReports
-- Rows: owner, label, silent_ms (since its last sign of life), report, report_age_ms (NULL: none).
SELECT owner, label, CAST(round((julianday('now') - julianday(seen_at)) * 86400000.0) AS INTEGER) AS silent_ms, report, CAST(round((julianday('now') - julianday(reported_at)) * 86400000.0) AS INTEGER) AS report_age_ms
FROM local_message_relay WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') ORDER BY table_name, owner;

-- renew
-- lease_until = now + leaseMs for held shards at their epoch.
UPDATE local_message_shard SET lease_until = strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds'), lease_ms = ? WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?;

-- readLeases
-- Rows: shard, owner, epoch, lease_until (text), lease_ms.
SELECT shard, owner, CAST(epoch AS TEXT) AS epoch, strftime('%Y-%m-%dT%H:%M:%fZ', lease_until) AS lease_until, lease_ms
FROM local_message_shard WHERE table_name = 'local_message' ORDER BY shard;

-- readInstances
-- Rows: owner, label, alive (0/1).
SELECT owner, label, seen_at BETWEEN strftime('%Y-%m-%d %H:%M:%f', 'now', (-? / 1000.0) || ' seconds') AND strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds') AS alive FROM local_message_relay WHERE table_name = 'local_message' ORDER BY owner;

-- readSuspensions
-- Rows: scope, value, reason, author, ends_in_ms, without ended ones.
SELECT scope, value, reason, author, -CAST(round((julianday('now') - julianday(ends_at)) * 86400000.0) AS INTEGER) AS ends_in_ms
FROM local_message_suspension WHERE table_name = 'local_message' AND (ends_at IS NULL OR ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now'))
ORDER BY scope, value;

-- take
-- Takes the shard exactly as observed or not at all. The transaction has the file's only write
-- lock, so takers run one after the other (rule: hand-over).
UPDATE local_message_shard
SET owner = ?, epoch = epoch + 1, lease_until = strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds'), lease_ms = ?
WHERE table_name = 'local_message' AND shard = 0 AND epoch = ? AND owner IS ? AND strftime('%Y-%m-%dT%H:%M:%fZ', lease_until) = ?;

-- recoverShards
-- Second of a takeover: `sending` rows of these shards back to pending, lock_version + 1,
-- next_retry_at = deliver_at if in the future, else NULL. Skips rows that a user holds where the
-- engine can (rule: watched-sending finds them later).
UPDATE local_message AS m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.state = 1 AND EXISTS (SELECT 1 FROM json_each(?) WHERE value = 0);

-- recoverListed
-- sendingMark off: delivery_count + 1 and lock_version + 1 for the ids listed in these shards'
-- lease rows. Skips rows that a user holds where the engine can, uncounted.
UPDATE local_message AS m
SET delivery_count = COALESCE(m.delivery_count, 0) + 1, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE +m.state IN (0) AND EXISTS (SELECT 1 FROM json_each(?) WHERE value = 0)
  AND m.id IN (SELECT listed.value FROM local_message_shard AS lease, json_each(lease.in_flight) AS listed WHERE lease.table_name = 'local_message' AND lease.shard = 0);

-- clearListed
UPDATE local_message_shard SET in_flight = '[]' WHERE table_name = 'local_message' AND shard IN (SELECT value FROM json_each(?));

-- release
-- Keeps the epoch, which the next owner raises; without an owner our fences do not match.
UPDATE local_message_shard SET owner = NULL, lease_until = strftime('%Y-%m-%d %H:%M:%f', 'now'), in_flight = '[]' WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?;

-- removeInstance
DELETE FROM local_message_relay WHERE table_name = 'local_message' AND owner = ?;

-- forgetInstances
-- Deletes registry rows silent for a day, so that restarts do not grow the table.
DELETE FROM local_message_relay WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') AND seen_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day');

-- =================================================================================================
-- Finding what waits

-- scan
-- One shard (rule: sqlite-handle): a request for shards comes from its owner.
SELECT * FROM (
  SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN LENGTH(CAST(m.message_body AS BLOB)) <= ? THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    min(m.retry_count, 9007199254740991) AS retry_count, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash, m.sent_at IS NOT NULL AS resend,
    CAST(round((julianday('now') - julianday(max(m.gmt_create, COALESCE(m.deliver_at, '')))) * 86400000.0) AS INTEGER) AS waiting_ms, 0 AS due, LENGTH(CAST(m.message_body AS BLOB)) AS body_bytes
  FROM local_message AS m
  WHERE m.state = 0 AND m.next_retry_at IS NULL AND m.id > CAST(? AS INTEGER)
    AND (m.deliver_at IS NULL OR m.deliver_at <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
  ORDER BY m.id
  LIMIT ?)
UNION ALL
SELECT * FROM (
  SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN LENGTH(CAST(m.message_body AS BLOB)) <= ? THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    min(m.retry_count, 9007199254740991) AS retry_count, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash, m.sent_at IS NOT NULL AS resend,
    CAST(round((julianday('now') - julianday(max(m.gmt_create, COALESCE(m.deliver_at, '')))) * 86400000.0) AS INTEGER) AS waiting_ms, 1 AS due, LENGTH(CAST(m.message_body AS BLOB)) AS body_bytes
  FROM local_message AS m
  WHERE m.state = 0 AND m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
  ORDER BY m.next_retry_at, m.id
  LIMIT ?);

-- scan, of some shards
SELECT * FROM (
  SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN LENGTH(CAST(m.message_body AS BLOB)) <= ? THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    min(m.retry_count, 9007199254740991) AS retry_count, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash, m.sent_at IS NOT NULL AS resend,
    CAST(round((julianday('now') - julianday(max(m.gmt_create, COALESCE(m.deliver_at, '')))) * 86400000.0) AS INTEGER) AS waiting_ms, 0 AS due, LENGTH(CAST(m.message_body AS BLOB)) AS body_bytes
  FROM local_message AS m
  WHERE m.state = 0 AND m.next_retry_at IS NULL AND m.id > CAST(? AS INTEGER)
    AND (m.deliver_at IS NULL OR m.deliver_at <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
  ORDER BY m.id
  LIMIT ?)
UNION ALL
SELECT * FROM (
  SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN LENGTH(CAST(m.message_body AS BLOB)) <= ? THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    min(m.retry_count, 9007199254740991) AS retry_count, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash, m.sent_at IS NOT NULL AS resend,
    CAST(round((julianday('now') - julianday(max(m.gmt_create, COALESCE(m.deliver_at, '')))) * 86400000.0) AS INTEGER) AS waiting_ms, 1 AS due, LENGTH(CAST(m.message_body AS BLOB)) AS body_bytes
  FROM local_message AS m
  WHERE m.state = 0 AND m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
  ORDER BY m.next_retry_at, m.id
  LIMIT ?);

-- scanTopics
-- The same two walks per topic, along the partial index on waiting rows by topic. They find ids
-- only; the rows are read by id.
SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN LENGTH(CAST(m.message_body AS BLOB)) <= ? THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    min(m.retry_count, 9007199254740991) AS retry_count, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash, m.sent_at IS NOT NULL AS resend,
    CAST(round((julianday('now') - julianday(max(m.gmt_create, COALESCE(m.deliver_at, '')))) * 86400000.0) AS INTEGER) AS waiting_ms, walked.due AS due, LENGTH(CAST(m.message_body AS BLOB)) AS body_bytes
FROM (
SELECT * FROM (SELECT m.id AS id, 0 AS due FROM local_message AS m
  WHERE m.state = 0 AND m.topic = ? AND m.next_retry_at IS NULL AND m.id > CAST(? AS INTEGER)
    AND (m.deliver_at IS NULL OR m.deliver_at <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
  ORDER BY m.id
  LIMIT ?)
UNION ALL
SELECT * FROM (SELECT m.id AS id, 1 AS due FROM local_message AS m
  WHERE m.state = 0 AND m.topic = ? AND m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
  ORDER BY m.next_retry_at, m.id
  LIMIT ?)) AS walked
CROSS JOIN local_message AS m ON m.id = walked.id;

-- nextTopics
-- min over a range of the index on waiting rows by topic: one lookup per topic. likely() keeps the
-- planner off the state index: 12 ms at 40,000.
SELECT (SELECT min(m.topic) FROM local_message AS m WHERE likely(m.state = 0) AND m.topic > known.value) AS topic
FROM json_each(?) AS known;

-- readBodies
-- Aliases: id message_body.
SELECT CAST(m.id AS TEXT) AS id, m.message_body AS message_body FROM local_message AS m WHERE m.id IN (SELECT value FROM json_each(?));

-- keyQueues
-- For each key, the rows that may stand before its scanned ones (rule: key-order), by the index on
-- keyed rows.
SELECT m.ordering_key AS ordering_key, CAST(m.id AS TEXT) AS id, m.state AS state,
  m.state = 0 AND (m.next_retry_at IS NULL OR m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')) AS due,
  m.sent_at IS NOT NULL AS resend, min(m.retry_count, 9007199254740991) AS retry_count, m.message_type AS message_type
FROM (SELECT value ->> 0 AS ordering_key, value ->> 1 AS up_to_id FROM json_each(?)) AS wanted
CROSS JOIN local_message AS m ON m.ordering_key = wanted.ordering_key AND m.id <= wanted.up_to_id
WHERE m.ordering_key IS NOT NULL AND m.state IN (0, 1, 3, 5)
ORDER BY m.ordering_key, m.id;

-- keyQueues, of many keys
SELECT m.ordering_key AS ordering_key, CAST(m.id AS TEXT) AS id, m.state AS state,
  m.state = 0 AND (m.next_retry_at IS NULL OR m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')) AS due,
  m.sent_at IS NOT NULL AS resend, min(m.retry_count, 9007199254740991) AS retry_count, m.message_type AS message_type
FROM (SELECT value ->> 0 AS ordering_key, value ->> 1 AS up_to_id FROM json_each(?)) AS wanted
CROSS JOIN local_message AS m ON m.ordering_key = wanted.ordering_key AND m.id <= wanted.up_to_id
WHERE m.ordering_key IS NOT NULL AND m.state IN (0, 1, 3, 5)
ORDER BY m.ordering_key, m.id;

-- =================================================================================================
-- Taking it

-- claim
-- One statement is one transaction. The shard is ours, so no other relay can claim the rows; a
-- person's change shows in state and lock_version. If we die right after it, the rows stay
-- `sending`, and the next owner of the shard returns them to pending.
UPDATE local_message AS m
SET state = 1, delivery_count = COALESCE(m.delivery_count, 0) + 1, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash FROM json_each(?)) AS claimed
WHERE m.id = claimed.id AND +m.state IN (0) AND COALESCE(m.lock_version, 0) = claimed.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = claimed.identity_hash
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- claim, past locked rows
UPDATE local_message AS m
SET state = 1, delivery_count = COALESCE(m.delivery_count, 0) + 1, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash FROM json_each(?)) AS claimed
WHERE m.id = claimed.id AND +m.state IN (0) AND COALESCE(m.lock_version, 0) = claimed.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = claimed.identity_hash
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- verifyClaim
-- Alias: id.
SELECT CAST(m.id AS TEXT) AS id
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash FROM json_each(?)) AS claimed
CROSS JOIN local_message AS m ON m.id = claimed.id
WHERE +m.state IN (1) AND COALESCE(m.lock_version, 0) = claimed.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = claimed.identity_hash
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- listInFlight
-- The claim without a mark (rule: listed-in-flight). The same statement checks owner and epoch and
-- writes the list.
UPDATE local_message_shard SET in_flight = ? WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?;

-- readHeld
-- Alias: shard. Held shards at their epochs, to see which lists were written.
SELECT shard FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?;

-- =================================================================================================
-- Writing what came of it

-- settleSent
-- A row that a confirmation overtook into `consumed` only gets its receipt; its lock_version has
-- moved, so delivery_count identifies the claim. If we die right after it, nothing is missing.
UPDATE local_message AS m
SET state = CASE WHEN +m.state IN (4) THEN m.state ELSE 2 END,
  next_retry_at = CASE WHEN +m.state IN (4) THEN m.next_retry_at ELSE strftime('%Y-%m-%d %H:%M:%f', 'now', (outcome.next_ms / 1000.0) || ' seconds') END,
  fail_reason = CASE WHEN +m.state IN (4) THEN m.fail_reason ELSE NULL END, message_id = outcome.message_id, sent_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), last_retry_at = CASE WHEN +m.state IN (4) THEN m.last_retry_at ELSE strftime('%Y-%m-%d %H:%M:%f', 'now', (-? / 1000.0) || ' seconds') END, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS next_ms, value ->> 4 AS delivery_count, value ->> 5 AS message_id FROM json_each(?)) AS outcome
WHERE m.id = outcome.id
  AND ((+m.state IN (1) AND COALESCE(m.lock_version, 0) = outcome.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = outcome.identity_hash)
    OR (+m.state IN (4) AND m.message_id IS NULL AND m.delivery_count = outcome.delivery_count AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = outcome.identity_hash))
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- deleteSent
-- A row that a confirmation has overtaken is left to housekeeping. Finds the rows by id first,
-- because DELETE cannot join. If we die before it, the message is sent again with the same
-- identity; right after it, nothing is missing.
DELETE FROM local_message WHERE id IN (
  SELECT m.id FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash FROM json_each(?)) AS outcome CROSS JOIN local_message AS m ON m.id = outcome.id
  WHERE +m.state IN (1) AND COALESCE(m.lock_version, 0) = outcome.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = outcome.identity_hash AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?));

-- settleOther
-- Failures and uncounted returns: pending with a time, or failed. Writes the start of an attempt
-- (retry_delta 1). If we die right after it, nothing is missing.
UPDATE local_message AS m
SET state = CASE WHEN outcome.failed = 1 THEN 3 ELSE 0 END,
  retry_count = COALESCE(m.retry_count, 0) + outcome.retry_delta,
  next_retry_at = CASE WHEN outcome.failed = 1 THEN strftime('%Y-%m-%d %H:%M:%f', 'now', (outcome.next_ms / 1000.0) || ' seconds') ELSE CASE WHEN outcome.next_ms IS NULL THEN CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END ELSE max(COALESCE(m.deliver_at, ''), strftime('%Y-%m-%d %H:%M:%f', 'now', (outcome.next_ms / 1000.0) || ' seconds')) END END,
  fail_reason = COALESCE(outcome.fail_reason, m.fail_reason), delivery_count = max(COALESCE(m.delivery_count, 0) + outcome.delivery_delta, 0), last_retry_at = CASE WHEN outcome.retry_delta = 1 THEN strftime('%Y-%m-%d %H:%M:%f', 'now', (-? / 1000.0) || ' seconds') ELSE m.last_retry_at END, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS next_ms, value ->> 4 AS failed, value ->> 5 AS retry_delta, value ->> 6 AS delivery_delta, value ->> 7 AS fail_reason FROM json_each(?)) AS outcome
WHERE m.id = outcome.id AND +m.state IN (1) AND COALESCE(m.lock_version, 0) = outcome.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = outcome.identity_hash
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- readRows
-- Current rows. Aliases: id state delivery_count lock_version.
SELECT CAST(m.id AS TEXT) AS id, m.state AS state, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash
FROM local_message AS m
WHERE m.id IN (SELECT value FROM json_each(?));

-- lockFreeRows
-- SQLite has no row locks.
SELECT CAST(m.id AS TEXT) AS id, m.state AS state, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash
FROM local_message AS m
WHERE m.id IN (SELECT value FROM json_each(?));

-- =================================================================================================
-- What consumers report

-- confirmIdentities
UPDATE local_message AS m
SET state = 4, next_retry_at = NULL, consumed_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT json_extract(value, '$[0]') AS type, json_extract(value, '$[1]') AS key FROM json_each(?)) AS wanted
WHERE m.message_type = wanted.type AND m.message_key = wanted.key AND +m.state IN (2, 1, 0, 3, 5);

-- lockIdentities
SELECT CAST(m.id AS TEXT) AS id, m.message_type AS messagetype, m.message_key AS messagekey,
  m.state AS state, m.delivery_count AS deliverycount
FROM (SELECT json_extract(value, '$[0]') AS type, json_extract(value, '$[1]') AS key FROM json_each(?)) AS wanted CROSS JOIN local_message AS m ON m.message_type = wanted.type AND m.message_key = wanted.key
ORDER BY m.id;

-- lockIdentities, in the archive
SELECT CAST(m.id AS TEXT) AS id, m.message_type AS messagetype, m.message_key AS messagekey,
  m.state AS state, m.delivery_count AS deliverycount
FROM (SELECT json_extract(value, '$[0]') AS type, json_extract(value, '$[1]') AS key FROM json_each(?)) AS wanted CROSS JOIN local_message_archive AS m ON m.message_type = wanted.type AND m.message_key = wanted.key
ORDER BY m.archived_at, m.id;

-- confirmRows
UPDATE local_message AS m
SET state = 4, next_retry_at = NULL, consumed_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT value FROM json_each(?)) AND +m.state IN (2, 1, 0, 3, 5);

-- confirmArchived
UPDATE local_message_archive AS m
SET state = 4, next_retry_at = NULL, consumed_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT json_extract(value, '$[0]') AS type, json_extract(value, '$[1]') AS key FROM json_each(?)) AS wanted
WHERE m.message_type = wanted.type AND m.message_key = wanted.key AND +m.state IN (2, 1, 0, 3, 5);

-- touchRows
UPDATE local_message AS m
SET lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT value FROM json_each(?));

-- reportFailed
UPDATE local_message AS m
SET fail_reason = reported.text, next_retry_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS text FROM json_each(?)) AS reported
WHERE m.id = reported.id AND +m.state IN (2);

-- addConfirmations
-- "WHERE true" keeps the parser from reading ON CONFLICT as a join condition.
INSERT INTO local_message_confirmation (table_name, message, consumer, confirmed_at)
SELECT 'local_message', added.id, added.text, strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS text FROM json_each(?)) AS added
WHERE true
ON CONFLICT (table_name, message, consumer) DO NOTHING;

-- readConfirmations
SELECT CAST(c.message AS TEXT) AS id, c.consumer AS consumer
FROM json_each(?) AS asked
CROSS JOIN local_message_confirmation AS c ON c.table_name = 'local_message' AND c.message = asked.value;

-- forgetConfirmations
DELETE FROM local_message_confirmation WHERE (table_name, message, consumer) IN (
  SELECT table_name, message, consumer FROM local_message_confirmation
  WHERE table_name = 'local_message' AND confirmed_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', (-? / 1000.0) || ' seconds')
  ORDER BY confirmed_at LIMIT ?);

-- countUnknown
SELECT count(*) AS kept FROM (SELECT 1 FROM local_message_unmatched WHERE table_name = 'local_message' LIMIT ?) AS u;

-- keepUnknown
-- "WHERE true" keeps the parser from reading ON CONFLICT as a join condition.
INSERT INTO local_message_unmatched AS u (table_name, message_type, message_key, consumer, reason, times, first_at, last_at)
SELECT 'local_message', value ->> 'type', value ->> 'key', value ->> 'consumer', value ->> 'reason', value ->> 'times', strftime('%Y-%m-%d %H:%M:%f', 'now'), strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM json_each(?)
WHERE true
ON CONFLICT (table_name, message_type, message_key, consumer)
DO UPDATE SET reason = excluded.reason, times = u.times + excluded.times, last_at = excluded.last_at;

-- forgetUnknown
DELETE FROM local_message_unmatched WHERE (table_name, message_type, message_key, consumer) IN (
  SELECT table_name, message_type, message_key, consumer FROM local_message_unmatched
  WHERE table_name = 'local_message' AND last_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', (-? / 1000.0) || ' seconds')
  ORDER BY last_at LIMIT ?);

-- =================================================================================================
-- Not now

-- setBehind
-- The file has one writer at a time: an unfinished head stays so until this commits, and its later
-- settle finds the followers. If we die right after it, that settle brings them back.
UPDATE local_message AS m
SET next_retry_at = follower.instant, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS head_id, value ->> 4 AS instant FROM json_each(?)) AS follower
WHERE m.id = follower.id AND +m.state IN (0) AND COALESCE(m.lock_version, 0) = follower.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = follower.identity_hash AND (m.next_retry_at IS NULL OR m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
  AND EXISTS (SELECT 1 FROM local_message AS head WHERE head.id = follower.head_id AND head.id < m.id
    AND head.ordering_key = m.ordering_key AND +head.state IN (0, 1, 5, 3))
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- bringBack
-- Head by head in the given order, each along the index, to which SQLite adds the id.
UPDATE local_message AS m
SET next_retry_at = CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT behind.id FROM json_each(?) AS head
  CROSS JOIN local_message AS behind ON behind.state = 0 AND behind.next_retry_at = head.value
  LIMIT ? OFFSET ?);

-- nextBehind
-- Alias: instant, ISO 8601 text. The next one with rows set behind; NULL for none.
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', min(m.next_retry_at)) AS instant FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at > ?;

-- park
-- next_ms is a column instead of a parameter, because pendingIn needs it twice.
UPDATE local_message AS m
SET next_retry_at = CASE WHEN scanned.next_ms IS NULL THEN CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END ELSE max(COALESCE(m.deliver_at, ''), strftime('%Y-%m-%d %H:%M:%f', 'now', (scanned.next_ms / 1000.0) || ' seconds')) END, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS next_ms FROM json_each(?)) AS scanned
WHERE m.id = scanned.id AND +m.state IN (0) AND COALESCE(m.lock_version, 0) = scanned.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = scanned.identity_hash
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- resetBackoff
-- The ramp has `limit` steps and continues after `done` of them.
UPDATE local_message AS m
SET next_retry_at = strftime('%Y-%m-%d %H:%M:%f', 'now', ((ramp.place * ?) / 1000.0) || ' seconds'), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT picked.id AS id, row_number() OVER (ORDER BY picked.id) - 1 + ? AS place FROM (
    SELECT m.id AS id FROM local_message AS m
    WHERE m.state IN (0, 3) AND m.next_retry_at > strftime('%Y-%m-%d %H:%M:%f', 'now', ((? * ?) / 1000.0) || ' seconds') AND m.next_retry_at < '3000-01-01 00:00:00.000' AND m.topic = ? AND (m.deliver_at IS NULL OR m.deliver_at <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
    ORDER BY m.id LIMIT ? OFFSET ?) AS picked) AS ramp
WHERE m.id = ramp.id;

-- readClock
-- For a clock that was set back. If we die right after it, those rows are due, and the rest wait
-- for their time.
SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS now_ms;

-- shortenWaits
-- For a clock that was set back. If we die right after it, those rows are due, and the rest wait
-- for their time.
UPDATE local_message AS m
SET next_retry_at = max(strftime('%Y-%m-%d %H:%M:%f', 'now', ((ramp.place * ?) / 1000.0) || ' seconds'), COALESCE(m.deliver_at, '')), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT picked.id AS id, row_number() OVER (ORDER BY picked.id) - 1 + ? AS place FROM (
    SELECT m.id AS id FROM local_message AS m
    WHERE m.state = 0 AND m.retry_count > 0
      AND m.next_retry_at > strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds') AND m.next_retry_at < '3000-01-01 00:00:00.000'
      AND (m.deliver_at IS NULL OR m.next_retry_at > strftime('%Y-%m-%d %H:%M:%f', m.deliver_at, (? / 1000.0) || ' seconds'))
    ORDER BY m.id LIMIT ? OFFSET ?) AS picked) AS ramp
WHERE m.id = ramp.id;

-- suspendPending
UPDATE local_message AS m
SET state = 5, next_retry_at = strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds'), fail_reason = ?, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash FROM json_each(?)) AS scanned
WHERE m.id = scanned.id AND +m.state IN (0) AND COALESCE(m.lock_version, 0) = scanned.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = scanned.identity_hash
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- failPending
-- Only the shard's owner may claim these rows; a person's change since the scan shows in the token.
UPDATE local_message AS m
SET state = 3, next_retry_at = strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds'), fail_reason = scanned.fail_reason, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS fail_reason FROM json_each(?)) AS scanned
WHERE m.id = scanned.id AND +m.state IN (0) AND COALESCE(m.lock_version, 0) = scanned.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = scanned.identity_hash
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- =================================================================================================
-- Looking after it

-- listSending
-- Aliases: id shard delivery_count lock_version topic.
SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash,
  m.topic AS topic
FROM local_message AS m
WHERE m.state = 1
ORDER BY m.id
LIMIT ?;

-- recoverRows
-- Fenced, and only for the same claim seen twice (rule: watched-sending): later changes move the
-- token.
UPDATE local_message AS m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash FROM json_each(?)) AS stray
WHERE m.id = stray.id AND +m.state IN (1) AND COALESCE(m.lock_version, 0) = stray.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = stray.identity_hash
  AND EXISTS (SELECT 1 FROM local_message_shard WHERE table_name = 'local_message' AND shard = 0 AND owner = ? AND epoch = ?);

-- listTimed
-- Three walks along the index; only the results are sorted together.
SELECT id, shard, delivery_count, lock_version, identity_hash, state, message_type, message_key, topic, retry_count, age_ms, fail_reason
FROM (SELECT * FROM (
  SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash,
    m.state AS state, m.message_type AS message_type, m.message_key AS message_key, m.topic AS topic, min(m.retry_count, 9007199254740991) AS retry_count,
    CAST(round((julianday('now') - julianday(m.gmt_create)) * 86400000.0) AS INTEGER) AS age_ms, m.fail_reason AS fail_reason, m.next_retry_at AS due_at
  FROM local_message AS m
  WHERE m.state = 2 AND m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
  ORDER BY m.next_retry_at
  LIMIT ?)
UNION ALL SELECT * FROM (
  SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash,
    m.state AS state, m.message_type AS message_type, m.message_key AS message_key, m.topic AS topic, min(m.retry_count, 9007199254740991) AS retry_count,
    CAST(round((julianday('now') - julianday(m.gmt_create)) * 86400000.0) AS INTEGER) AS age_ms, m.fail_reason AS fail_reason, m.next_retry_at AS due_at
  FROM local_message AS m
  WHERE m.state = 3 AND m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
  ORDER BY m.next_retry_at
  LIMIT ?)
UNION ALL SELECT * FROM (
  SELECT CAST(m.id AS TEXT) AS id, 0 AS shard, min(m.delivery_count, 9007199254740991) AS delivery_count, CAST(m.lock_version AS TEXT) AS lock_version, COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') AS identity_hash,
    m.state AS state, m.message_type AS message_type, m.message_key AS message_key, m.topic AS topic, min(m.retry_count, 9007199254740991) AS retry_count,
    CAST(round((julianday('now') - julianday(m.gmt_create)) * 86400000.0) AS INTEGER) AS age_ms, m.fail_reason AS fail_reason, m.next_retry_at AS due_at
  FROM local_message AS m
  WHERE m.state = 5 AND m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
  ORDER BY m.next_retry_at
  LIMIT ?)) AS timed
ORDER BY due_at
LIMIT ?;

-- applyTimed, slowRetry
-- A person or consumer who changed a row since it was listed has moved its token, and wins.
UPDATE local_message AS m
SET state = 0, next_retry_at = CASE WHEN decided.next_ms IS NULL THEN CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END ELSE max(COALESCE(m.deliver_at, ''), strftime('%Y-%m-%d %H:%M:%f', 'now', (decided.next_ms / 1000.0) || ' seconds')) END, fail_reason = COALESCE(decided.fail_reason, m.fail_reason), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS next_ms, value ->> 4 AS fail_reason FROM json_each(?)) AS decided
WHERE m.id = decided.id AND +m.state IN (3) AND COALESCE(m.lock_version, 0) = decided.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = decided.identity_hash;

-- applyTimed, resume
UPDATE local_message AS m
SET state = 0, next_retry_at = CASE WHEN decided.next_ms IS NULL THEN CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END ELSE max(COALESCE(m.deliver_at, ''), strftime('%Y-%m-%d %H:%M:%f', 'now', (decided.next_ms / 1000.0) || ' seconds')) END, fail_reason = COALESCE(decided.fail_reason, m.fail_reason), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS next_ms, value ->> 4 AS fail_reason FROM json_each(?)) AS decided
WHERE m.id = decided.id AND +m.state IN (5) AND COALESCE(m.lock_version, 0) = decided.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = decided.identity_hash;

-- applyTimed, confirmTimeoutResend
UPDATE local_message AS m
SET state = 0, next_retry_at = CASE WHEN decided.next_ms IS NULL THEN CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END ELSE max(COALESCE(m.deliver_at, ''), strftime('%Y-%m-%d %H:%M:%f', 'now', (decided.next_ms / 1000.0) || ' seconds')) END, fail_reason = COALESCE(decided.fail_reason, m.fail_reason), retry_count = COALESCE(m.retry_count, 0) + 1, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS next_ms, value ->> 4 AS fail_reason FROM json_each(?)) AS decided
WHERE m.id = decided.id AND +m.state IN (2) AND COALESCE(m.lock_version, 0) = decided.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = decided.identity_hash;

-- applyTimed, confirmTimeoutFail
UPDATE local_message AS m
SET state = 3, next_retry_at = strftime('%Y-%m-%d %H:%M:%f', 'now', (decided.next_ms / 1000.0) || ' seconds'), fail_reason = COALESCE(decided.fail_reason, m.fail_reason), retry_count = COALESCE(m.retry_count, 0) + 1, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS next_ms, value ->> 4 AS fail_reason FROM json_each(?)) AS decided
WHERE m.id = decided.id AND +m.state IN (2) AND COALESCE(m.lock_version, 0) = decided.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = decided.identity_hash;

-- applyTimed, clearTimer
UPDATE local_message AS m
SET next_retry_at = CASE WHEN m.state = 2 THEN '9999-12-31 00:00:00.000' END, fail_reason = COALESCE(decided.fail_reason, m.fail_reason), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS identity_hash, value ->> 3 AS next_ms, value ->> 4 AS fail_reason FROM json_each(?)) AS decided
WHERE m.id = decided.id AND +m.state IN (2, 3) AND COALESCE(m.lock_version, 0) = decided.token AND COALESCE(m.message_type, '') || char(10) || COALESCE(m.message_key, '') = decided.identity_hash;

-- listStrays
-- Alias: id. Rows for the next two statements. No lock.
SELECT * FROM (SELECT CAST(m.id AS TEXT) AS id FROM local_message AS m WHERE state NOT IN (0, 1, 2, 3, 4, 5) LIMIT ?)
UNION ALL
SELECT * FROM (SELECT CAST(m.id AS TEXT) AS id FROM local_message AS m WHERE state IS NULL LIMIT ?)
UNION ALL
SELECT * FROM (SELECT CAST(m.id AS TEXT) AS id FROM local_message AS m WHERE id < 1 AND +state = 0 LIMIT ?);

-- failUnknownStates
-- If we die right after it, the rows are failed with a visible reason.
UPDATE local_message AS m
SET state = 3, next_retry_at = NULL,
  fail_reason = substr('UNKNOWN_STATE: the state was ' || COALESCE(m.state, 'NULL') || ', which is none of 0, 1, 2, 3, 4, 5; somebody changed the row by hand', 1, 1024), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT value FROM json_each(?)) AND (state NOT IN (0, 1, 2, 3, 4, 5) OR state IS NULL);

-- failUnreached
-- If we die right after it, the rows are failed with a visible reason.
UPDATE local_message AS m
SET state = 3, next_retry_at = NULL,
  fail_reason = substr('ID_BELOW_ONE: ids begin at 1, and no relay looks below; insert the message again with an id of the column itself', 1, 1024), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT value FROM json_each(?)) AND (id < 1 AND +state = 0);

-- gauges
-- Aliases: topic state count oldest_age_ms. Reads at most `limit` rows per state, and twice
-- `failedLimit` failed ones: the newest with and without a next attempt.
SELECT topic, state, count(*) AS count, CAST(round((julianday('now') - julianday(min(since))) * 86400000.0) AS INTEGER) AS oldest_age_ms
FROM (
  SELECT * FROM (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message AS m WHERE m.state = 0 LIMIT ?)
  UNION ALL
  SELECT * FROM (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message AS m WHERE m.state = 1 LIMIT ?)
  UNION ALL
  SELECT * FROM (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message AS m WHERE m.state = 5 LIMIT ?)
  UNION ALL
  SELECT * FROM (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message AS m WHERE m.state = 3 AND m.next_retry_at IS NULL ORDER BY m.id DESC LIMIT ?)
  UNION ALL
  SELECT * FROM (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message AS m WHERE m.state = 3 AND m.next_retry_at IS NOT NULL ORDER BY m.next_retry_at DESC LIMIT ?)) AS unfinished
GROUP BY topic, state;

-- =================================================================================================
-- Moving it away

-- lockFinished
-- No row locks: the surrounding transaction has the file's only write lock (rule: checked-move).
SELECT CAST(next.id AS TEXT) AS id FROM (
  SELECT m.id AS id, COALESCE(m.sent_at, m.gmt_modified) AS since, (true) AS own FROM local_message AS m WHERE m.state = 2 AND m.next_retry_at IS NULL AND m.id > ? ORDER BY m.id LIMIT ?) AS next
WHERE next.own AND next.since <= strftime('%Y-%m-%d %H:%M:%f', 'now', (-? / 1000.0) || ' seconds');

-- passFinished
-- Reads only index entries. No lock.
SELECT CAST(m.id AS TEXT) AS id FROM local_message AS m WHERE m.state = 2 AND m.next_retry_at IS NULL AND m.id > ? ORDER BY m.id LIMIT 1 OFFSET ?;

-- copyToArchive
-- No row locks: the surrounding transaction has the file's only write lock (rule: checked-move).
INSERT INTO local_message_archive (id, message_type, message_key, topic, message_body, state, retry_count, next_retry_at, fail_reason, gmt_create, gmt_modified, last_retry_at, headers, content_type, ordering_key, delivery_count, deliver_at, message_id, lock_version, sent_at, consumed_at, created_by, updated_by, archived_at) SELECT id, message_type, message_key, topic, message_body, state, retry_count, next_retry_at, fail_reason, gmt_create, gmt_modified, last_retry_at, headers, content_type, ordering_key, delivery_count, deliver_at, message_id, lock_version, sent_at, consumed_at, created_by, updated_by, strftime('%Y-%m-%d %H:%M:%f', 'now') FROM local_message WHERE id IN (SELECT value FROM json_each(?));

-- deleteRows
-- No row locks: the surrounding transaction has the file's only write lock (rule: checked-move).
DELETE FROM local_message WHERE id IN (SELECT value FROM json_each(?));

-- purgeArchive
-- No row locks: the surrounding transaction has the file's only write lock (rule: checked-move).
DELETE FROM local_message_archive WHERE rowid IN (
  SELECT rowid FROM local_message_archive WHERE archived_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', (-? / 1000.0) || ' seconds') ORDER BY archived_at LIMIT ?);

-- =================================================================================================
-- What people do

-- find
-- Aliases: id lock_version, for the archive also archived_at as text. In id order; rows with the
-- same id by archived_at.
SELECT CAST(m.id AS TEXT) AS id, CAST(m.lock_version AS TEXT) AS lock_version
FROM local_message AS m
WHERE m.message_type IN (?) AND m.message_key = ?
ORDER BY +m.id DESC LIMIT ?;

-- find, of a rare state
SELECT CAST(m.id AS TEXT) AS id, CAST(m.lock_version AS TEXT) AS lock_version
FROM local_message AS m
WHERE m.topic = ? AND m.state IN (3)
ORDER BY +m.id DESC LIMIT ?;

-- find, by ids
SELECT CAST(m.id AS TEXT) AS id, CAST(m.lock_version AS TEXT) AS lock_version
FROM local_message AS m
WHERE m.id >= 80001 AND instr(m.fail_reason, ?) > 0
ORDER BY m.id DESC LIMIT ?;

-- chunkEnd
-- Alias: id, of the last of that many rows in this direction; no row if there are fewer. Walks the
-- primary key.
SELECT CAST(m.id AS TEXT) AS id FROM local_message AS m
WHERE m.id <= 100000
ORDER BY m.id DESC LIMIT 1 OFFSET ?;

-- readMessages
-- Aliases of `MessageSummary` in snake_case, `state` raw; with `bodies` also message_body and
-- headers, for the archive also archived_at as in `find`. In any order.
SELECT CAST(m.id AS TEXT) AS id,
  m.message_type AS message_type,
  m.message_key AS message_key,
  m.topic AS topic,
  m.state AS state,
  CAST(m.retry_count AS TEXT) AS retry_count,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.next_retry_at) AS next_retry_at,
  m.fail_reason AS fail_reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.gmt_create) AS gmt_create,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.gmt_modified) AS gmt_modified,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.last_retry_at) AS last_retry_at,
  m.content_type AS content_type,
  m.ordering_key AS ordering_key,
  CAST(m.delivery_count AS TEXT) AS delivery_count,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.deliver_at) AS deliver_at,
  m.message_id AS message_id,
  CAST(m.lock_version AS TEXT) AS lock_version,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.sent_at) AS sent_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.consumed_at) AS consumed_at,
  m.created_by AS created_by,
  m.updated_by AS updated_by
FROM local_message AS m WHERE m.id IN (100);

-- nextType
-- Alias: message_type, the next after this one; NULL for none. One lookup in the unique key.
SELECT MIN(m.message_type) AS message_type FROM local_message AS m WHERE m.message_type > ?;

-- idBounds
-- Aliases: first_id last_id, NULL in an empty table. Two lookups, because SQLite walks the table
-- for one.
SELECT (SELECT CAST(MIN(m.id) AS TEXT) FROM local_message AS m) AS first_id, (SELECT CAST(MAX(m.id) AS TEXT) FROM local_message AS m) AS last_id;

-- createdFrom
-- Aliases: id gmt_create, of the first row at or after each of these ids; for the archive the first
-- two, which may share the id.
SELECT * FROM (SELECT CAST(m.id AS TEXT) AS id, strftime('%Y-%m-%dT%H:%M:%fZ', m.gmt_create) AS gmt_create
  FROM local_message AS m WHERE m.id >= 100 ORDER BY m.id LIMIT ?)
UNION ALL
SELECT * FROM (SELECT CAST(m.id AS TEXT) AS id, strftime('%Y-%m-%dT%H:%M:%fZ', m.gmt_create) AS gmt_create
  FROM local_message AS m WHERE m.id >= 200 ORDER BY m.id LIMIT ?);

-- createdOfLastArchived
-- Aliases: id gmt_create, of the last archived rows.
SELECT CAST(m.id AS TEXT) AS id, strftime('%Y-%m-%dT%H:%M:%fZ', m.gmt_create) AS gmt_create
FROM local_message_archive AS m ORDER BY m.archived_at DESC LIMIT ?;

-- placeOf
-- Aliases: shard, clock (ISO text), due_in_ms, deliver_in_ms (NULL: no such time).
SELECT 0 AS shard, strftime('%Y-%m-%dT%H:%M:%fZ', strftime('%Y-%m-%d %H:%M:%f', 'now')) AS clock, -CAST(round((julianday('now') - julianday(m.next_retry_at)) * 86400000.0) AS INTEGER) AS due_in_ms, -CAST(round((julianday('now') - julianday(m.deliver_at)) * 86400000.0) AS INTEGER) AS deliver_in_ms
FROM local_message AS m WHERE m.id = CAST(? AS INTEGER);

-- countWaiting
-- Aliases: kind count next_in_ms, of pending messages: `backoff`, `delayed`, `due` or `behind`; at
-- most about `limit` each; a kind may come in several rows. Reads ranges of the index on state and
-- time, and the rows of waiting messages.
SELECT CASE WHEN c.held THEN 'delayed' ELSE 'backoff' END AS kind, COUNT(*) AS count, MIN(c.in_ms) AS next_in_ms
FROM (SELECT COALESCE(m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now'), FALSE) AS held, -CAST(round((julianday('now') - julianday(m.next_retry_at)) * 86400000.0) AS INTEGER) AS in_ms FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at > strftime('%Y-%m-%d %H:%M:%f', 'now') AND m.next_retry_at < '3000-01-01 00:00:00.000' LIMIT ?) AS c GROUP BY c.held
UNION ALL
SELECT 'due', COUNT(*), NULL FROM (SELECT 1 AS one FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at IS NULL LIMIT ?) AS c
UNION ALL
SELECT 'due', COUNT(*), NULL FROM (SELECT 1 AS one FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now') LIMIT ?) AS c
UNION ALL
SELECT 'behind', COUNT(*), NULL FROM (SELECT 1 AS one FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at >= '3000-01-01 00:00:00.000' LIMIT ?) AS c;

-- readChanges
-- Aliases: made_at (ISO text) author action reason ids details. The newest `limit` changes by hand
-- that may include this message; `ids` tells.
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', a.made_at) AS made_at, a.author AS author, a.action AS action, a.reason AS reason, a.ids AS ids, a.details AS details
FROM local_message_audit AS a WHERE a.table_name = 'local_message' AND a.first_id <= CAST(? AS INTEGER) AND a.last_id >= CAST(? AS INTEGER) ORDER BY a.id DESC LIMIT ?;

-- countStates
-- Aliases: state count. At most about `limit` each; a state may come in several rows. With `toSort`
-- counts only those that a page must sort, if an index has the others in id order. Reads only
-- indexes.
SELECT 3 AS state, COUNT(*) AS count FROM (
  SELECT 1 AS one FROM local_message AS m WHERE m.state = 3 LIMIT ?) AS c;

-- oldestDue
-- Aliases: id topic waiting_ms. At most two rows: the first without a time, the first due.
SELECT * FROM (SELECT CAST(m.id AS TEXT) AS id, m.topic AS topic, max(0, CAST(round((julianday('now') - julianday(m.gmt_create)) * 86400000.0) AS INTEGER)) AS waiting_ms
  FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at IS NULL ORDER BY m.id LIMIT 1)
UNION ALL
SELECT * FROM (SELECT CAST(m.id AS TEXT) AS id, m.topic AS topic, max(0, CAST(round((julianday('now') - julianday(m.next_retry_at)) * 86400000.0) AS INTEGER)) AS waiting_ms
  FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at <= strftime('%Y-%m-%d %H:%M:%f', 'now') ORDER BY m.next_retry_at, m.id LIMIT 1);

-- countByState
-- Aliases: topic state count oldest_age_ms, over all states. Reads the whole table.
SELECT m.topic AS topic, m.state AS state, COUNT(*) AS count, max(0, CAST(round((julianday('now') - julianday(MIN(m.gmt_create))) * 86400000.0) AS INTEGER)) AS oldest_age_ms
FROM local_message AS m GROUP BY m.topic, m.state ORDER BY topic, state;

-- lockRows
-- Aliases: id state lock_version fail_reason. Locks these rows in id order, like every statement,
-- until the change in the same transaction. By the primary key: with few rows or stale statistics
-- MySQL walks the whole table and waits for other rows.
SELECT CAST(m.id AS TEXT) AS id, m.state AS state, CAST(m.lock_version AS TEXT) AS lock_version, m.fail_reason AS fail_reason
FROM local_message AS m WHERE m.id IN (100) ORDER BY m.id;

-- recordChange
-- Adds an audit row, which commits or rolls back with its change.
INSERT INTO local_message_audit (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
VALUES ('local_message', strftime('%Y-%m-%d %H:%M:%f', 'now'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- operatorRetry
-- Checks the states again, so that the statement is safe by itself. Keeps the last error, but drops
-- a suspension rule's words.
UPDATE local_message AS m
SET fail_reason = CASE WHEN instr(m.fail_reason, 'suspended by rule ') = 1 THEN NULL ELSE m.fail_reason END, updated_by = ?, state = 0, next_retry_at = CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END, retry_count = 0, delivery_count = 0, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT value FROM json_each(?)) AND +m.state IN (3, 2);

-- bringForward
-- Checks the states again, so that the statement is safe by itself. Keeps the last error, but drops
-- a suspension rule's words.
UPDATE local_message AS m
SET next_retry_at = NULL, updated_by = ?, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT value FROM json_each(?)) AND +m.state IN (0) AND m.next_retry_at > strftime('%Y-%m-%d %H:%M:%f', 'now') AND m.next_retry_at < '3000-01-01 00:00:00.000'
  AND (m.deliver_at IS NULL OR m.deliver_at <= strftime('%Y-%m-%d %H:%M:%f', 'now'));

-- suspendRows
-- Checks the states again, so that the statement is safe by itself. Keeps the last error, but drops
-- a suspension rule's words.
UPDATE local_message AS m
SET fail_reason = CASE WHEN instr(m.fail_reason, 'suspended by rule ') = 1 THEN NULL ELSE m.fail_reason END, updated_by = ?, state = 5, next_retry_at = strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds'), lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT value FROM json_each(?)) AND +m.state IN (0, 3);

-- resumeRows
-- Checks the states again, so that the statement is safe by itself. Keeps the last error, but drops
-- a suspension rule's words.
UPDATE local_message AS m
SET fail_reason = CASE WHEN instr(m.fail_reason, 'suspended by rule ') = 1 THEN NULL ELSE m.fail_reason END, updated_by = ?, state = 0, next_retry_at = CASE WHEN m.deliver_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN m.deliver_at END, lock_version = CASE COALESCE(m.lock_version, 0) WHEN 9223372036854775807 THEN -9223372036854775808 ELSE COALESCE(m.lock_version, 0) + 1 END, gmt_modified = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE m.id IN (SELECT value FROM json_each(?)) AND +m.state IN (5);

-- putSuspension
INSERT INTO local_message_suspension (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES ('local_message', ?, ?, ?, ?, strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds'), strftime('%Y-%m-%d %H:%M:%f', 'now'))
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = excluded.reason, author = excluded.author, ends_at = excluded.ends_at, gmt_create = excluded.gmt_create;

-- deleteSuspension
-- Locks its one rule; later statements resume its messages.
DELETE FROM local_message_suspension WHERE table_name = 'local_message' AND scope = ? AND value = ?;

-- listSuspendedBy
-- Aliases: id lock_version. Rows suspended by this rule, found by the beginning of fail_reason.
SELECT CAST(m.id AS TEXT) AS id, CAST(m.lock_version AS TEXT) AS lock_version FROM local_message AS m
WHERE m.state = 5 AND instr(m.fail_reason COLLATE BINARY, ?) = 1
ORDER BY m.id LIMIT ?;
