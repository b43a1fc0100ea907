-- Every statement of the default layout as the server gets it, in the order of a message's way.
-- Each stands under the comment of its builder, which says what it locks and what happens if we die
-- right after it. Made by tools/sql-as-it-runs.mjs; see src/databases/ for the builders and docs/
-- for the rules.
--
-- The relay's sessions are READ COMMITTED; each statement outside a transaction commits by itself.
-- What takes no parameters is planned anew each time.

-- =================================================================================================
-- Writing a message, in the user's transaction

-- markTransaction
SELECT set_config('rowpost.tx', left('mark' || ' ' || COALESCE(current_setting('rowpost.tx', true), ''), 8000), true);

-- insert
-- One text for any number of messages can be prepared, and bodies need no escaping. With 100
-- messages of 400 bytes, not prepared: this 2.5 us of client CPU a row, 1.1 ms in all; multi-row
-- VALUES 2.5 us and 1.4 ms (parsed anew for every size); unnest of text arrays 6 to 8 us and 1.5
-- ms. One message takes 0.16 ms, plain VALUES 0.15.
--
-- `$1::text::json`, because postgres.js converts a `$1::json` text to JSON again. Ids follow the
-- array order, in which the function scan feeds the identity column. A duplicate is left out of the
-- result, and the transaction stays usable. Waits only for another transaction that inserts the
-- same identity. Without a commit nothing was written.
--
-- $2 is the mark of the call. With $3 the transaction must already have it, or nothing is inserted:
-- without an await, the INSERT may arrive after the ROLLBACK. Without $3 this is the call's first
-- statement and leaves the mark. A sub-query runs this once, before the first row.
WITH inserted AS (
  INSERT INTO local_message (message_type, message_key, topic, message_body, headers, content_type, ordering_key, state, deliver_at, next_retry_at, created_by, updated_by, gmt_create, gmt_modified)
  SELECT incoming.type,
    incoming.key,
    incoming.topic,
    incoming.body,
    incoming.headers,
    incoming.content_type,
    incoming.ordering_key,
    0,
    CASE WHEN incoming.deliver_at_ms IS NOT NULL THEN to_timestamp(incoming.deliver_at_ms / 1000.0)
    ELSE statement_timestamp() + incoming.delay_ms * interval '1 millisecond' END,
    CASE WHEN incoming.deliver_at_ms IS NOT NULL THEN to_timestamp(incoming.deliver_at_ms / 1000.0)
    ELSE statement_timestamp() + incoming.delay_ms * interval '1 millisecond' END,
    incoming.created_by,
    incoming.created_by,
    statement_timestamp(),
    statement_timestamp()
  FROM json_to_recordset($1::text::json) AS incoming (type text, key text, topic text, body text, headers text, content_type text,
    ordering_key text, delay_ms bigint, deliver_at_ms bigint, created_by text)
  WHERE (SELECT CASE WHEN $3::boolean THEN strpos(COALESCE(current_setting('rowpost.tx', true), ''), $2::text || ' ') > 0 ELSE set_config('rowpost.tx', left($2::text || ' ' || COALESCE(current_setting('rowpost.tx', true), ''), 8000), true) <> '' END)
  ON CONFLICT (message_type, message_key) DO NOTHING
  RETURNING message_type::text COLLATE "C" AS messagetype, message_key::text COLLATE "C" AS messagekey)
SELECT messagetype, messagekey, (SELECT CASE WHEN pg_try_advisory_xact_lock(-1247639744, ((date_part('epoch', transaction_timestamp()) * 20)::bigint % 2147483647)::integer)
    THEN pg_notify('rowpost.local_message', '') IS NULL END) AS rung FROM inserted;

-- findIdentities
-- No lock, since that needs the UPDATE privilege, which an enqueuing role may lack.
SELECT m.message_type::text COLLATE "C" AS messagetype, m.message_key::text COLLATE "C" AS messagekey
FROM json_to_recordset($1::text::json) AS wanted (type text, key text)
JOIN local_message m ON m.message_type = wanted.type AND m.message_key = wanted.key
UNION ALL SELECT NULL, NULL WHERE NOT strpos(COALESCE(current_setting('rowpost.tx', true), ''), $2::text || ' ') > 0;

-- deleteIdentities
-- Locks rows that this transaction has inserted.
DELETE FROM local_message m USING json_to_recordset($1::text::json) AS wanted (type text, key text) WHERE strpos(COALESCE(current_setting('rowpost.tx', true), ''), $2::text || ' ') > 0 AND m.message_type = wanted.type AND m.message_key = wanted.key;

-- =================================================================================================
-- Holding shards

-- ensureShards
-- Parallel inserts meet at the primary key, and existing rows stay. If we die right after it,
-- nothing is lost.
INSERT INTO local_message_shard (table_name, shard)
SELECT 'local_message', shard FROM generate_series(0, 15) AS missing (shard)
ON CONFLICT (table_name, shard) DO NOTHING;

-- reportInstance
-- Running relays and suspension rules. Each writing statement locks the registry rows it writes
-- (its own or dead instances') until it ends; no other statement writes them.
INSERT INTO local_message_relay (table_name, owner, label, seen_at) VALUES ('local_message', $1, $2, statement_timestamp())
ON CONFLICT (table_name, owner) DO UPDATE SET label = EXCLUDED.label, seen_at = EXCLUDED.seen_at;

-- writeReport
-- Running relays and suspension rules. Each writing statement locks the registry rows it writes
-- (its own or dead instances') until it ends; no other statement writes them.
UPDATE local_message_relay SET report = $1, reported_at = statement_timestamp() WHERE table_name = 'local_message' AND owner = $2;

-- readReports
-- Rows: owner, label, silent_ms (since its last sign of life), report, report_age_ms (NULL: none).
SELECT owner, label, CASE WHEN isfinite(seen_at) AND isfinite(statement_timestamp()) THEN (date_part('epoch', statement_timestamp() - seen_at) * 1000)::bigint END AS silent_ms, report, CASE WHEN isfinite(reported_at) AND isfinite(statement_timestamp()) THEN (date_part('epoch', statement_timestamp() - reported_at) * 1000)::bigint END AS report_age_ms
FROM local_message_relay WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') ORDER BY table_name, owner;

-- renew
-- Changes no key column, so it waits for no fence (see fenceClause); an earlier takeover shows in
-- the epoch.
UPDATE local_message_shard lease
SET lease_until = statement_timestamp() + $2::bigint * interval '1 millisecond', lease_ms = $2::bigint
FROM unnest($3::integer[], $4::bigint[]) AS held (shard, epoch)
WHERE lease.table_name = 'local_message' AND lease.owner = $1 AND lease.shard = held.shard AND lease.epoch = held.epoch;

-- readLeases
-- Rows: shard, owner, epoch, lease_until (text), lease_ms.
SELECT shard, owner, epoch, COALESCE(to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (lease_until)::text) AS lease_until, lease_ms
FROM local_message_shard WHERE table_name = 'local_message' ORDER BY shard;

-- readInstances
-- Rows: owner, label, alive (0/1).
SELECT owner, label, CASE WHEN seen_at BETWEEN statement_timestamp() - $1::bigint * interval '1 millisecond' AND statement_timestamp() + $1::bigint * interval '1 millisecond' THEN 1 ELSE 0 END AS alive
FROM local_message_relay WHERE table_name = 'local_message' ORDER BY owner;

-- readSuspensions
-- Rows: scope, value, reason, author, ends_in_ms, without ended ones.
SELECT scope, value, reason, author, CASE WHEN isfinite(statement_timestamp()) AND isfinite(ends_at) THEN (date_part('epoch', ends_at - statement_timestamp()) * 1000)::bigint END AS ends_in_ms
FROM local_message_suspension WHERE table_name = 'local_message' AND (ends_at IS NULL OR ends_at > statement_timestamp())
ORDER BY scope, value;

-- take
-- Locks the lease rows in shard order, so takers cannot deadlock, and waits for running fenced
-- statements (see fenceClause). The second taker finds another epoch and takes nothing. Compares
-- lease_until as observed, to prove that it was not renewed (rule: hand-over).
WITH free AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($3::integer[], $4::bigint[], $5::text[], $6::text[]) AS observed (shard, epoch, owner, lease_until)
    ON observed.shard = lease.shard AND observed.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner IS NOT DISTINCT FROM observed.owner
    AND COALESCE(to_char(lease.lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (lease.lease_until)::text) = observed.lease_until
  ORDER BY lease.shard
  FOR UPDATE OF lease)
UPDATE local_message_shard lease
SET owner = $1, epoch = lease.epoch + 1, lease_until = statement_timestamp() + $2::bigint * interval '1 millisecond', lease_ms = $2::bigint
FROM free
WHERE lease.table_name = 'local_message' AND lease.shard = free.shard;

-- recoverShards
-- A separate statement, because it needs a snapshot after the takeover's lock: in one statement it
-- saw 0 of 3 rows (rule: takeover-fence). Locks the free `sending` rows; waiting for a user's lock
-- would fail the takeover at every heartbeat, so the sweep finds such a row (rule:
-- watched-sending). If we die before the commit, the shards stay free.
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(SELECT m.id FROM local_message m
  WHERE m.state = 1 AND (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) = ANY ($1::integer[])
  FOR UPDATE SKIP LOCKED));

-- recoverListed
-- Locks the free listed rows; the lease rows are ours already. Skips a row that a user holds,
-- without counting this delivery, because our first batch replaces the list (rule:
-- listed-in-flight). That is safe: a late settle of the old owner fails at the epoch, and the crash
-- limit (rule: crash-counting) is reached one crash later.
UPDATE local_message m
SET delivery_count = COALESCE(m.delivery_count, 0) + 1, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(SELECT m.id
  FROM (SELECT unnest(lease.in_flight) AS id FROM local_message_shard lease WHERE lease.table_name = 'local_message' AND lease.shard = ANY ($1::integer[])) AS listed
  JOIN local_message m ON m.id = listed.id
  WHERE m.state = 0
  FOR UPDATE OF m SKIP LOCKED));

-- clearListed
-- Part of a takeover, whose transaction has locked these lease rows.
UPDATE local_message_shard SET in_flight = '{}' WHERE table_name = 'local_message' AND shard = ANY ($1::integer[]);

-- release
-- Keeps the epoch, which the next owner raises; without an owner our fences do not match.
UPDATE local_message_shard lease
SET owner = NULL, lease_until = statement_timestamp(), in_flight = '{}'
FROM unnest($2::integer[], $3::bigint[]) AS held (shard, epoch)
WHERE lease.table_name = 'local_message' AND lease.owner = $1 AND lease.shard = held.shard AND lease.epoch = held.epoch;

-- removeInstance
-- Running relays and suspension rules. Each writing statement locks the registry rows it writes
-- (its own or dead instances') until it ends; no other statement writes them.
DELETE FROM local_message_relay WHERE table_name = 'local_message' AND owner = $1;

-- forgetInstances
-- Running relays and suspension rules. Each writing statement locks the registry rows it writes
-- (its own or dead instances') until it ends; no other statement writes them.
DELETE FROM local_message_relay WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') AND seen_at < statement_timestamp() - interval '1 day';

-- =================================================================================================
-- Finding what waits

-- scan
-- Two walks, waiting rows by id and due rows by time, each along a partial index in its order, so
-- each ends after LIMIT rows. A row of another shard counts toward the LIMIT and comes back without
-- its body (rule: bounded-scan), so the sweep knows how far the walk went. A row with only
-- deliver_at set, by plain SQL, is left out until it is due.
SELECT waiting.* FROM (
  (SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN octet_length(m.message_body) <= $4::bigint THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    m.retry_count AS retry_count, m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash, CASE WHEN m.sent_at IS NULL THEN 0 ELSE 1 END AS resend,
    LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', GREATEST(m.gmt_create, m.deliver_at))) * 1000, 0), 9007199254740991)::bigint AS waiting_ms, 0 AS due,
    octet_length(m.message_body) AS body_bytes
  FROM local_message m
  WHERE m.state = 0 AND m.next_retry_at IS NULL AND m.id > $1::bigint
    AND (m.deliver_at IS NULL OR m.deliver_at <= statement_timestamp())
  ORDER BY m.id
  LIMIT $2::bigint)
  UNION ALL
  (SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN octet_length(m.message_body) <= $4::bigint THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    m.retry_count AS retry_count, m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash, CASE WHEN m.sent_at IS NULL THEN 0 ELSE 1 END AS resend,
    LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', GREATEST(m.gmt_create, m.deliver_at))) * 1000, 0), 9007199254740991)::bigint AS waiting_ms, 1 AS due,
    octet_length(m.message_body) AS body_bytes
  FROM local_message m
  WHERE m.state = 0 AND m.next_retry_at <= statement_timestamp()
  ORDER BY m.next_retry_at, m.id
  LIMIT $3::bigint)) waiting;

-- scan, of some shards
SELECT waiting.* FROM (
  (SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) = ANY ($5::integer[]) AND octet_length(m.message_body) <= $4::bigint THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    m.retry_count AS retry_count, m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash, CASE WHEN m.sent_at IS NULL THEN 0 ELSE 1 END AS resend,
    LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', GREATEST(m.gmt_create, m.deliver_at))) * 1000, 0), 9007199254740991)::bigint AS waiting_ms, 0 AS due,
    CASE WHEN (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) = ANY ($5::integer[]) THEN octet_length(m.message_body) ELSE 0 END AS body_bytes
  FROM local_message m
  WHERE m.state = 0 AND m.next_retry_at IS NULL AND m.id > $1::bigint
    AND (m.deliver_at IS NULL OR m.deliver_at <= statement_timestamp())
  ORDER BY m.id
  LIMIT $2::bigint)
  UNION ALL
  (SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) = ANY ($5::integer[]) AND octet_length(m.message_body) <= $4::bigint THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    m.retry_count AS retry_count, m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash, CASE WHEN m.sent_at IS NULL THEN 0 ELSE 1 END AS resend,
    LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', GREATEST(m.gmt_create, m.deliver_at))) * 1000, 0), 9007199254740991)::bigint AS waiting_ms, 1 AS due,
    CASE WHEN (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) = ANY ($5::integer[]) THEN octet_length(m.message_body) ELSE 0 END AS body_bytes
  FROM local_message m
  WHERE m.state = 0 AND m.next_retry_at <= statement_timestamp()
  ORDER BY m.next_retry_at, m.id
  LIMIT $3::bigint)) waiting;

-- scanTopics
-- The same two walks per topic, along the partial index on waiting rows by topic. They find ids;
-- the rows are read by id. Rows without a time are ordered by (next_retry_at, id), which keeps the
-- planner off the primary key. Topics and limits are constants: a prepared plan for any topic would
-- walk all due rows.
SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard, m.message_type AS message_type, m.message_key AS message_key,
    m.topic AS topic, CASE WHEN octet_length(m.message_body) <= 1048576 THEN m.message_body END AS message_body, m.headers AS headers,
    m.content_type AS content_type, m.ordering_key AS ordering_key,
    m.retry_count AS retry_count, m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash, CASE WHEN m.sent_at IS NULL THEN 0 ELSE 1 END AS resend,
    LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', GREATEST(m.gmt_create, m.deliver_at))) * 1000, 0), 9007199254740991)::bigint AS waiting_ms, walked.due AS due,
    octet_length(m.message_body) AS body_bytes
FROM (
(SELECT m.id AS id, 0 AS due
  FROM local_message m
  WHERE (m.state + 0) = 0 AND m.topic = 'orders' AND m.next_retry_at IS NULL AND m.id > 0
    AND (m.deliver_at IS NULL OR m.deliver_at <= statement_timestamp())
  ORDER BY m.next_retry_at, m.id
  LIMIT 500)
UNION ALL
(SELECT m.id AS id, 1 AS due
  FROM local_message m
  WHERE (m.state + 0) = 0 AND m.topic = 'orders' AND m.next_retry_at <= statement_timestamp()
  ORDER BY m.next_retry_at, m.id
  LIMIT 125)) walked
JOIN local_message m ON m.id = walked.id;

-- nextTopics
-- min over a range of the index on waiting rows by topic: one lookup per topic.
SELECT next.topic
FROM unnest($1::text[]) AS known (topic)
CROSS JOIN LATERAL (
  SELECT min(m.topic) AS topic FROM local_message m WHERE (m.state + 0) = 0 AND m.topic > known.topic) next;

-- readBodies
-- Aliases: id message_body.
SELECT m.id AS id, m.message_body AS message_body
FROM local_message m
WHERE m.id = ANY ($1::bigint[]);

-- keyQueues
-- For each key, the rows that may stand before its scanned ones (rule: key-order). The index lists
-- the same four states as this statement at its widest, so the planner can prove that it applies.
-- No COLLATE: a parameter takes the column's collation, and so its index; every deterministic
-- collation compares equal by bytes (rule: exact-bytes).
SELECT m.ordering_key AS ordering_key, m.id AS id, m.state AS state,
  CASE WHEN m.state = 0 AND (m.next_retry_at IS NULL OR m.next_retry_at <= statement_timestamp()) THEN 1 ELSE 0 END AS due,
  CASE WHEN m.sent_at IS NULL THEN 0 ELSE 1 END AS resend, m.retry_count AS retry_count, m.message_type AS message_type
FROM unnest($1::text[], $2::bigint[]) AS wanted (ordering_key, up_to_id)
JOIN local_message m ON m.ordering_key = wanted.ordering_key AND m.id <= wanted.up_to_id
WHERE m.ordering_key IS NOT NULL AND m.state IN (0, 1, 3, 5)
ORDER BY m.ordering_key, m.id;

-- keyQueues, of many keys
SELECT m.ordering_key AS ordering_key, m.id AS id, m.state AS state,
  CASE WHEN m.state = 0 AND (m.next_retry_at IS NULL OR m.next_retry_at <= statement_timestamp()) THEN 1 ELSE 0 END AS due,
  CASE WHEN m.sent_at IS NULL THEN 0 ELSE 1 END AS resend, m.retry_count AS retry_count, m.message_type AS message_type
FROM unnest($1::text[], $2::bigint[]) AS wanted (ordering_key, up_to_id)
JOIN local_message m ON m.ordering_key = wanted.ordering_key AND m.id <= wanted.up_to_id
WHERE m.ordering_key IS NOT NULL AND m.state IN (0, 1, 3, 5)
ORDER BY m.ordering_key, m.id;

-- =================================================================================================
-- Taking it

-- claim
-- Locks the lease rows (key share), then the message rows in the given order. The shards are ours,
-- so no other relay can claim them; a person's change shows in state and lock_version, checked
-- again after a lock wait. If we die right after it, the rows stay `sending`, and the next owner of
-- the shard returns them to pending.
--
-- `skipLocked` claims only rows that a CTE could lock, after the lease rows.
--
-- Writes fixed-size columns only. HOT updates are impossible, since the partial indexes need
-- `state` in their predicates.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease)
UPDATE local_message m
SET state = 1, delivery_count = COALESCE(m.delivery_count, 0) + 1, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS claimed (id, shard, token, identity_hash), fence
WHERE m.id = claimed.id AND fence.shard = claimed.shard
  AND m.state = 0 AND COALESCE(m.lock_version, 0) = claimed.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = claimed.identity_hash;

-- claim, past locked rows
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease), free AS MATERIALIZED (
  SELECT m.id FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS claimed (id, shard, token, identity_hash) JOIN fence ON fence.shard = claimed.shard JOIN local_message m ON m.id = claimed.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET state = 1, delivery_count = COALESCE(m.delivery_count, 0) + 1, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS claimed (id, shard, token, identity_hash), fence, free
WHERE m.id = claimed.id AND fence.shard = claimed.shard AND m.id = free.id
  AND m.state = 0 AND COALESCE(m.lock_version, 0) = claimed.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = claimed.identity_hash;

-- verifyClaim
-- Reads back a claim whose answer was lost or whose count differed. Locks the lease rows, so a
-- takeover is either seen here or comes later. Does not wait for a claim still running on the old
-- connection, and reports only committed rows (rule: watched-sending).
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease)
SELECT m.id AS id
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS claimed (id, shard, token, identity_hash)
JOIN fence ON fence.shard = claimed.shard
JOIN local_message m ON m.id = claimed.id
WHERE m.state = 1 AND COALESCE(m.lock_version, 0) = claimed.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = claimed.identity_hash;

-- listInFlight
-- The claim without a mark: the lease rows list the ids in flight (rule: listed-in-flight). Owner
-- and epoch are checked under the lease row's lock, also after waiting for a takeover. If we die
-- right after it, the next owner counts a delivery for the listed ids.
UPDATE local_message_shard lease
SET in_flight = listed.ids::bigint[]
FROM unnest($2::integer[], $3::bigint[], $4::text[]) AS listed (shard, epoch, ids)
WHERE lease.table_name = 'local_message' AND lease.owner = $1 AND lease.shard = listed.shard AND lease.epoch = listed.epoch;

-- readHeld
-- Alias: shard. Held shards at their epochs, to see which lists were written.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease)
SELECT shard FROM fence;

-- =================================================================================================
-- Writing what came of it

-- settleSent
-- A row that a confirmation overtook into `consumed` only gets its receipt; its lock_version has
-- moved, so delivery_count identifies the claim. Locks the rows in the given order, after the lease
-- rows. If we die right after it, nothing is missing.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease)
UPDATE local_message m
SET state = CASE WHEN m.state = 4 THEN m.state ELSE 2 END,
  next_retry_at = CASE WHEN m.state = 4 THEN m.next_retry_at ELSE statement_timestamp() + outcome.next_ms * interval '1 millisecond' END,
  fail_reason = CASE WHEN m.state = 4 THEN m.fail_reason ELSE NULL END, message_id = outcome.message_id, sent_at = statement_timestamp(), last_retry_at = CASE WHEN m.state = 4 THEN m.last_retry_at ELSE statement_timestamp() - $11::bigint * interval '1 millisecond' END, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[]) AS outcome (id, shard, token, identity_hash, next_ms, delivery_count, message_id), fence
WHERE m.id = outcome.id AND fence.shard = outcome.shard
  AND ((m.state = 1 AND COALESCE(m.lock_version, 0) = outcome.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = outcome.identity_hash)
    OR (m.state = 4 AND m.message_id IS NULL AND m.delivery_count = outcome.delivery_count AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = outcome.identity_hash));

-- deleteSent
-- A row that a confirmation has overtaken is left to housekeeping. Locks like the settle of sent
-- rows. If we die before it, the message is sent again with the same identity; right after it,
-- nothing is missing.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease)
DELETE FROM local_message m
USING unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS outcome (id, shard, token, identity_hash), fence
WHERE m.id = outcome.id AND fence.shard = outcome.shard
  AND m.state = 1 AND COALESCE(m.lock_version, 0) = outcome.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = outcome.identity_hash;

-- settleOther
-- Failures and uncounted returns: pending with a time, or failed. Writes the start of an attempt
-- (retry_delta 1). Locks like the settle of sent rows. If we die right after it, nothing is
-- missing.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease)
UPDATE local_message m
SET state = CASE WHEN outcome.failed = 1 THEN 3 ELSE 0 END,
  retry_count = COALESCE(m.retry_count, 0) + outcome.retry_delta,
  next_retry_at = CASE WHEN outcome.failed = 1 THEN statement_timestamp() + outcome.next_ms * interval '1 millisecond' ELSE CASE WHEN outcome.next_ms IS NULL THEN CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END ELSE GREATEST(m.deliver_at, statement_timestamp() + outcome.next_ms * interval '1 millisecond') END END,
  fail_reason = COALESCE(outcome.fail_reason, m.fail_reason), delivery_count = GREATEST(COALESCE(m.delivery_count, 0) + outcome.delivery_delta, 0), last_retry_at = CASE WHEN outcome.retry_delta = 1 THEN statement_timestamp() - $13::bigint * interval '1 millisecond' ELSE m.last_retry_at END, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[], $8::bigint[], $9::integer[], $10::integer[], $11::bigint[], $12::text[]) AS outcome (id, shard, token, identity_hash, next_ms, failed, retry_delta, delivery_delta, fail_reason), fence
WHERE m.id = outcome.id AND fence.shard = outcome.shard
  AND m.state = 1 AND COALESCE(m.lock_version, 0) = outcome.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = outcome.identity_hash;

-- readRows
-- Current rows. Aliases: id state delivery_count lock_version.
SELECT m.id AS id, m.state AS state, m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash
FROM local_message m
WHERE m.id = ANY ($1::bigint[]);

-- lockFreeRows
-- Takes the same lock as an UPDATE, for this short transaction only.
SELECT m.id AS id
FROM local_message m
WHERE m.id = ANY ($1::bigint[])
ORDER BY m.id
FOR NO KEY UPDATE SKIP LOCKED;

-- =================================================================================================
-- What consumers report

-- confirmIdentities
-- Locks the rows in id order, like all statements. A row changed during the wait has a new place
-- and stays; the count shows it, and lockIdentities finds it. By places and from arrays, 500 rows
-- reach 0.92 of the rate of a bare UPDATE; by ids and from JSON 0.83 (PostgreSQL 15). Not for a
-- user's own table, where partitions may share places. If we die right after it, the transaction
-- rolls back, and the consumer confirms again.
UPDATE local_message m
SET state = 4, next_retry_at = NULL, consumed_at = statement_timestamp(), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.ctid = ANY (ARRAY(
  SELECT m.ctid FROM unnest($1::text[], $2::text[]) AS wanted (type, key)
  JOIN local_message m ON m.message_type = wanted.type AND m.message_key = wanted.key
  WHERE m.state IN (2, 1, 0, 3, 5)
  ORDER BY m.id
  FOR UPDATE OF m)) AND m.state IN (2, 1, 0, 3, 5);

-- lockIdentities
-- Locks the rows until the transaction ends.
SELECT m.id::text AS id, m.message_type::text COLLATE "C" AS messagetype, m.message_key::text COLLATE "C" AS messagekey,
  m.state::text AS state, m.delivery_count AS deliverycount
FROM json_to_recordset($1::text::json) AS wanted (type text, key text) JOIN local_message m ON m.message_type = wanted.type AND m.message_key = wanted.key
ORDER BY m.id
FOR UPDATE OF m;

-- lockIdentities, in the archive
SELECT m.id::text AS id, m.message_type::text COLLATE "C" AS messagetype, m.message_key::text COLLATE "C" AS messagekey,
  m.state::text AS state, m.delivery_count AS deliverycount
FROM json_to_recordset($1::text::json) AS wanted (type text, key text) JOIN local_message_archive m ON m.message_type = wanted.type AND m.message_key = wanted.key
ORDER BY m.archived_at, m.id
FOR UPDATE OF m;

-- confirmRows
-- lockIdentities has locked the rows.
UPDATE local_message m
SET state = 4, next_retry_at = NULL, consumed_at = statement_timestamp(), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($1::bigint[]) AND m.state IN (2, 1, 0, 3, 5);

-- confirmArchived
-- lockIdentities has locked the rows.
UPDATE local_message_archive m
SET state = 4, next_retry_at = NULL, consumed_at = statement_timestamp(), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM json_to_recordset($1::text::json) AS wanted (type text, key text)
WHERE m.message_type = wanted.type AND m.message_key = wanted.key AND m.state IN (2, 1, 0, 3, 5);

-- touchRows
-- A new row version, so that a parallel confirmation with an older snapshot fails instead of
-- missing this one.
UPDATE local_message m
SET lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($1::bigint[]);

-- reportFailed
-- lockIdentities has locked the rows.
UPDATE local_message m
SET fail_reason = reported.reason, next_retry_at = statement_timestamp(), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($1::bigint[], $2::text[]) AS reported (id, reason)
WHERE m.id = reported.id AND m.state = 2;

-- addConfirmations
-- lockIdentities holds the messages, so no other transaction adds the same rows.
INSERT INTO local_message_confirmation (table_name, message, consumer, confirmed_at)
SELECT 'local_message', added.id, added.consumer, statement_timestamp()
FROM unnest($1::bigint[], $2::text[]) AS added (id, consumer)
ON CONFLICT (table_name, message, consumer) DO NOTHING;

-- readConfirmations
-- No lock: the messages are locked, and their earlier holders have committed.
SELECT c.message::text AS id, c.consumer::text COLLATE "C" AS consumer
FROM local_message_confirmation c
WHERE c.table_name = 'local_message' AND c.message = ANY ($1::bigint[]);

-- forgetConfirmations
-- Locks old entries, which no statement changes. If we die right after it, the expired entries are
-- gone.
DELETE FROM local_message_confirmation WHERE ctid = ANY (ARRAY(
  SELECT c.ctid FROM local_message_confirmation c
  WHERE c.table_name = 'local_message' AND c.confirmed_at <= statement_timestamp() - $1::bigint * interval '1 millisecond'
  ORDER BY c.confirmed_at LIMIT $2::bigint));

-- countUnknown
-- A plain read: two parallel counts may exceed the limit by one call each.
SELECT count(*) AS kept FROM (SELECT 1 FROM local_message_unmatched WHERE table_name = 'local_message' LIMIT $1::bigint) AS u;

-- keepUnknown
-- Locks these entries in row order, as all calls do. If we die right after it, nothing is kept, but
-- the confirmations have committed before.
INSERT INTO local_message_unmatched AS u (table_name, message_type, message_key, consumer, reason, times, first_at, last_at)
SELECT 'local_message', said.type, said.key, said.consumer, said.reason, said.times, statement_timestamp(), statement_timestamp()
FROM json_to_recordset($1::text::json) AS said (type text, key text, consumer text, reason text, times bigint)
ON CONFLICT (table_name, message_type, message_key, consumer)
DO UPDATE SET reason = EXCLUDED.reason, times = u.times + EXCLUDED.times, last_at = EXCLUDED.last_at;

-- forgetUnknown
-- Locks old entries. The age is checked again under the lock, so an entry reported meanwhile stays.
-- If we die right after it, the expired entries are gone.
DELETE FROM local_message_unmatched u WHERE u.ctid = ANY (ARRAY(
  SELECT old.ctid FROM local_message_unmatched old
  WHERE old.table_name = 'local_message' AND old.last_at <= statement_timestamp() - $1::bigint * interval '1 millisecond'
  ORDER BY old.last_at LIMIT $2::bigint)) AND u.last_at <= statement_timestamp() - $1::bigint * interval '1 millisecond';

-- =================================================================================================
-- Not now

-- setBehind
-- Locks the lease rows (key share), then free heads still in place, then free followers. A settle
-- of the head has either committed (the head is finished), holds it (the head is skipped), or waits
-- for us and then finds the followers. A plain read could miss a settle about to commit, and the
-- followers would wait for no head. If we die right after it, the settle of the head brings them
-- back.
--
-- `free` returns all needed columns. Joined again, the planner compared each follower with each
-- (500 rows: 330 ms, now 26, on a busy machine).
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease), head AS MATERIALIZED (
  SELECT m.id AS id, m.ordering_key AS ordering_key FROM local_message m
  WHERE m.id = ANY ($8::bigint[]) AND m.state IN (0, 1, 5, 3) AND EXISTS (SELECT FROM fence)
  ORDER BY m.id
  FOR NO KEY UPDATE OF m SKIP LOCKED), free AS MATERIALIZED (
  SELECT follower.id, follower.token, follower.identity_hash, follower.instant FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]) AS follower (id, shard, token, identity_hash, head_id, instant) JOIN head ON head.id = follower.head_id AND head.id < follower.id
    JOIN fence ON fence.shard = follower.shard JOIN local_message m ON m.id = follower.id AND m.ordering_key = head.ordering_key
  ORDER BY m.id
  FOR NO KEY UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET next_retry_at = (free.instant || 'Z')::timestamptz, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM free
WHERE m.id = free.id AND m.state = 0 AND COALESCE(m.lock_version, 0) = free.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = free.identity_hash AND (m.next_retry_at IS NULL OR m.next_retry_at <= statement_timestamp());

-- bringBack
-- Locks the rows it changes and skips locked ones. Not fenced: each settle or move of a head brings
-- its followers back, and doing so twice changes nothing. One walk per head. A range of one
-- millisecond, because with an equality the planner may walk the primary key.
UPDATE local_message m
SET next_retry_at = CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(
  SELECT behind.id FROM unnest($1::text[]) AS head (instant) CROSS JOIN LATERAL (
    SELECT m.id AS id FROM local_message m
    WHERE m.state = 0 AND m.next_retry_at >= (head.instant || 'Z')::timestamptz AND m.next_retry_at < (head.instant || 'Z')::timestamptz + interval '1 millisecond'
    ORDER BY m.next_retry_at, m.id
    LIMIT $2::bigint + $3::bigint
    FOR NO KEY UPDATE SKIP LOCKED) behind
  LIMIT $2::bigint OFFSET $3::bigint));

-- nextBehind
-- min over a range of the index on timed rows is one lookup.
SELECT COALESCE(to_char(min(m.next_retry_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (min(m.next_retry_at))::text) AS instant
FROM local_message m
WHERE m.state = 0 AND m.next_retry_at > ($1::text || 'Z')::timestamptz;

-- park
-- They lock the lease rows (key share), then the free message rows; others are met again. No other
-- relay may claim them, and a person's change shows in the token. If we die right after it, each
-- row is either as it was or as decided.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease), free AS MATERIALIZED (
  SELECT m.id FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS scanned (id, shard, token, identity_hash) JOIN fence ON fence.shard = scanned.shard JOIN local_message m ON m.id = scanned.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET next_retry_at = CASE WHEN $8::bigint IS NULL THEN CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END ELSE GREATEST(m.deliver_at, statement_timestamp() + $8::bigint * interval '1 millisecond') END, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS scanned (id, shard, token, identity_hash), fence, free
WHERE m.id = scanned.id AND fence.shard = scanned.shard AND m.id = free.id AND m.state = 0 AND COALESCE(m.lock_version, 0) = scanned.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = scanned.identity_hash;

-- resetBackoff
-- The i-th row by id comes due i * step from now. Only rows that wait longer than the whole ramp,
-- so a second call continues where the first ended; never delayed rows (rule: delay-is-not-retry)
-- or rows set behind. For failed rows the slow retry comes due. Locks the rows; skips one claimed
-- meanwhile.
UPDATE local_message m
SET next_retry_at = statement_timestamp() + ramp.place * $3::bigint * interval '1 millisecond', lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM (SELECT picked.id, row_number() OVER (ORDER BY picked.id) - 1 + $6::bigint AS place FROM (
    SELECT m.id AS id FROM local_message m
    WHERE m.state IN (0, 3) AND m.next_retry_at > statement_timestamp() + $2::bigint * $3::bigint * interval '1 millisecond' AND m.next_retry_at < ('3000-01-01 00:00:00.000' || 'Z')::timestamptz AND m.topic = $1 AND (m.deliver_at > statement_timestamp()) IS NOT TRUE
    ORDER BY m.id LIMIT $4::bigint OFFSET $5::bigint FOR UPDATE SKIP LOCKED) picked) ramp
WHERE m.id = ramp.id;

-- readClock
-- For a clock that was set back. Locks free rows in id order; no relay works on them, because they
-- are not due. If we die right after it, those rows are due, and the rest wait for their time.
SELECT (date_part('epoch', statement_timestamp()) * 1000)::bigint AS now_ms;

-- shortenWaits
-- For a clock that was set back. Locks free rows in id order; no relay works on them, because they
-- are not due. If we die right after it, those rows are due, and the rest wait for their time.
UPDATE local_message m
SET next_retry_at = GREATEST(m.deliver_at, statement_timestamp() + ramp.place * $3::bigint * interval '1 millisecond'), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM (SELECT picked.id, row_number() OVER (ORDER BY picked.id) - 1 + $5::bigint AS place FROM (
    SELECT m.id AS id FROM local_message m
    WHERE m.state = 0 AND m.retry_count > 0
      AND m.next_retry_at > statement_timestamp() + $2::bigint * interval '1 millisecond' AND m.next_retry_at < ('3000-01-01 00:00:00.000' || 'Z')::timestamptz
      AND (m.deliver_at IS NULL OR m.next_retry_at > m.deliver_at + $2::bigint * interval '1 millisecond')
    ORDER BY m.id LIMIT $1::bigint OFFSET $4::bigint FOR UPDATE SKIP LOCKED) picked) ramp
WHERE m.id = ramp.id;

-- suspendPending
-- They lock the lease rows (key share), then the free message rows; others are met again. No other
-- relay may claim them, and a person's change shows in the token. If we die right after it, each
-- row is either as it was or as decided.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease), free AS MATERIALIZED (
  SELECT m.id FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS scanned (id, shard, token, identity_hash) JOIN fence ON fence.shard = scanned.shard JOIN local_message m ON m.id = scanned.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET state = 5, next_retry_at = statement_timestamp() + $8::bigint * interval '1 millisecond', fail_reason = $9::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS scanned (id, shard, token, identity_hash), fence, free
WHERE m.id = scanned.id AND fence.shard = scanned.shard AND m.id = free.id AND m.state = 0 AND COALESCE(m.lock_version, 0) = scanned.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = scanned.identity_hash;

-- failPending
-- They lock the lease rows (key share), then the free message rows; others are met again. No other
-- relay may claim them, and a person's change shows in the token. If we die right after it, each
-- row is either as it was or as decided.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease), free AS MATERIALIZED (
  SELECT m.id FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS scanned (id, shard, token, identity_hash) JOIN fence ON fence.shard = scanned.shard JOIN local_message m ON m.id = scanned.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET state = 3, next_retry_at = statement_timestamp() + $8::bigint * interval '1 millisecond', fail_reason = scanned.fail_reason, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[], $9::text[]) AS scanned (id, shard, token, identity_hash, fail_reason), fence, free
WHERE m.id = scanned.id AND fence.shard = scanned.shard AND m.id = free.id AND m.state = 0 AND COALESCE(m.lock_version, 0) = scanned.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = scanned.identity_hash;

-- =================================================================================================
-- Looking after it

-- listSending
-- Aliases: id shard delivery_count lock_version topic.
SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard, m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash,
  m.topic AS topic
FROM local_message m
WHERE m.state = 1
ORDER BY m.id
LIMIT $1::bigint;

-- recoverRows
-- Fenced, and only for the same claim seen twice (rule: watched-sending): later changes move the
-- token. Locks the lease rows, then the free message rows; others are left for the next sweep.
WITH fence AS MATERIALIZED (
  SELECT lease.shard
  FROM local_message_shard lease
  JOIN unnest($2::integer[], $3::bigint[]) AS held (shard, epoch) ON held.shard = lease.shard AND held.epoch = lease.epoch
  WHERE lease.table_name = 'local_message' AND lease.owner = $1
  ORDER BY lease.shard
  FOR KEY SHARE OF lease), free AS MATERIALIZED (
  SELECT m.id FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS stray (id, shard, token, identity_hash) JOIN fence ON fence.shard = stray.shard JOIN local_message m ON m.id = stray.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) AS stray (id, shard, token, identity_hash), fence, free
WHERE m.id = stray.id AND fence.shard = stray.shard AND m.id = free.id
  AND m.state = 1 AND COALESCE(m.lock_version, 0) = stray.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = stray.identity_hash;

-- listTimed
-- Three walks along the index on timed rows; only the results are sorted together.
SELECT id, shard, delivery_count, lock_version, identity_hash, state, message_type, message_key, topic, retry_count, age_ms, fail_reason
FROM ((SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard,
    m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash, m.state AS state, m.message_type AS message_type,
    m.message_key AS message_key, m.topic AS topic, m.retry_count AS retry_count, LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', m.gmt_create)) * 1000, 0), 9007199254740991)::bigint AS age_ms,
    m.fail_reason AS fail_reason, m.next_retry_at AS due_at
  FROM local_message m
  WHERE m.state = 2 AND m.next_retry_at <= statement_timestamp()
  ORDER BY m.next_retry_at, m.id
  LIMIT $1::bigint) UNION ALL (SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard,
    m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash, m.state AS state, m.message_type AS message_type,
    m.message_key AS message_key, m.topic AS topic, m.retry_count AS retry_count, LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', m.gmt_create)) * 1000, 0), 9007199254740991)::bigint AS age_ms,
    m.fail_reason AS fail_reason, m.next_retry_at AS due_at
  FROM local_message m
  WHERE m.state = 3 AND m.next_retry_at <= statement_timestamp()
  ORDER BY m.next_retry_at, m.id
  LIMIT $1::bigint) UNION ALL (SELECT m.id AS id, (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard,
    m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash, m.state AS state, m.message_type AS message_type,
    m.message_key AS message_key, m.topic AS topic, m.retry_count AS retry_count, LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', m.gmt_create)) * 1000, 0), 9007199254740991)::bigint AS age_ms,
    m.fail_reason AS fail_reason, m.next_retry_at AS due_at
  FROM local_message m
  WHERE m.state = 5 AND m.next_retry_at <= statement_timestamp()
  ORDER BY m.next_retry_at, m.id
  LIMIT $1::bigint)) timed
ORDER BY due_at, id
LIMIT $1::bigint;

-- applyTimed, slowRetry
-- Locks the rows in id order. A person or consumer who changed a row since it was listed has moved
-- its token, and wins. If we die right after it, every row is either as decided or still due.
--
-- `skipLocked` locks free rows in a CTE and changes only those; the others are still due and come
-- again.
WITH free AS MATERIALIZED (
  SELECT m.id FROM unnest($1::bigint[]) AS listed (id) JOIN local_message m ON m.id = listed.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN decided.next_ms IS NULL THEN CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END ELSE GREATEST(m.deliver_at, statement_timestamp() + decided.next_ms * interval '1 millisecond') END, fail_reason = COALESCE(decided.fail_reason, m.fail_reason), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]) AS decided (id, token, next_ms, fail_reason, identity_hash), free
WHERE m.id = decided.id AND m.id = free.id AND m.state IN (3) AND COALESCE(m.lock_version, 0) = decided.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = decided.identity_hash;

-- applyTimed, resume
WITH free AS MATERIALIZED (
  SELECT m.id FROM unnest($1::bigint[]) AS listed (id) JOIN local_message m ON m.id = listed.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN decided.next_ms IS NULL THEN CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END ELSE GREATEST(m.deliver_at, statement_timestamp() + decided.next_ms * interval '1 millisecond') END, fail_reason = COALESCE(decided.fail_reason, m.fail_reason), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]) AS decided (id, token, next_ms, fail_reason, identity_hash), free
WHERE m.id = decided.id AND m.id = free.id AND m.state IN (5) AND COALESCE(m.lock_version, 0) = decided.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = decided.identity_hash;

-- applyTimed, confirmTimeoutResend
WITH free AS MATERIALIZED (
  SELECT m.id FROM unnest($1::bigint[]) AS listed (id) JOIN local_message m ON m.id = listed.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN decided.next_ms IS NULL THEN CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END ELSE GREATEST(m.deliver_at, statement_timestamp() + decided.next_ms * interval '1 millisecond') END, fail_reason = COALESCE(decided.fail_reason, m.fail_reason), retry_count = COALESCE(m.retry_count, 0) + 1, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]) AS decided (id, token, next_ms, fail_reason, identity_hash), free
WHERE m.id = decided.id AND m.id = free.id AND m.state IN (2) AND COALESCE(m.lock_version, 0) = decided.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = decided.identity_hash;

-- applyTimed, confirmTimeoutFail
WITH free AS MATERIALIZED (
  SELECT m.id FROM unnest($1::bigint[]) AS listed (id) JOIN local_message m ON m.id = listed.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET state = 3, next_retry_at = statement_timestamp() + decided.next_ms * interval '1 millisecond', fail_reason = COALESCE(decided.fail_reason, m.fail_reason), retry_count = COALESCE(m.retry_count, 0) + 1, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]) AS decided (id, token, next_ms, fail_reason, identity_hash), free
WHERE m.id = decided.id AND m.id = free.id AND m.state IN (2) AND COALESCE(m.lock_version, 0) = decided.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = decided.identity_hash;

-- applyTimed, clearTimer
WITH free AS MATERIALIZED (
  SELECT m.id FROM unnest($1::bigint[]) AS listed (id) JOIN local_message m ON m.id = listed.id
  ORDER BY m.id
  FOR UPDATE OF m SKIP LOCKED)
UPDATE local_message m
SET next_retry_at = CASE WHEN m.state = 2 THEN timestamptz '9999-12-31T00:00:00Z' END, fail_reason = COALESCE(decided.fail_reason, m.fail_reason), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]) AS decided (id, token, next_ms, fail_reason, identity_hash), free
WHERE m.id = decided.id AND m.id = free.id AND m.state IN (2, 3) AND COALESCE(m.lock_version, 0) = decided.token AND hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) = decided.identity_hash;

-- listStrays
-- Alias: id. Rows for the next two statements. No lock.
(SELECT m.id AS id FROM local_message m WHERE (state IN (0, 1, 2, 3, 4, 5)) IS NOT TRUE ORDER BY m.id LIMIT $1::bigint)
UNION ALL
(SELECT m.id AS id FROM local_message m WHERE id < 1 AND state = 0 ORDER BY m.id LIMIT $1::bigint);

-- failUnknownStates
-- Skips locked rows until the next round. If we die right after it, the rows are failed with a
-- visible reason.
UPDATE local_message m
SET state = 3, next_retry_at = NULL,
  fail_reason = left('UNKNOWN_STATE: the state was ' || COALESCE(m.state::text, 'NULL') || ', which is none of 0, 1, 2, 3, 4, 5; somebody changed the row by hand', 1024), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(SELECT id FROM local_message WHERE id = ANY ($1::bigint[]) AND (state IN (0, 1, 2, 3, 4, 5)) IS NOT TRUE ORDER BY id FOR UPDATE SKIP LOCKED));

-- failUnreached
-- Skips locked rows until the next round. If we die right after it, the rows are failed with a
-- visible reason.
UPDATE local_message m
SET state = 3, next_retry_at = NULL,
  fail_reason = left('ID_BELOW_ONE: ids begin at 1, and no relay looks below; insert the message again with an id of the column itself' || ' (this one: ' || m.id || ')', 1024), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(SELECT id FROM local_message WHERE id = ANY ($1::bigint[]) AND id < 1 AND state = 0 ORDER BY id FOR UPDATE SKIP LOCKED));

-- gauges
-- Aliases: topic state count oldest_age_ms. Reads at most `limit` rows per state, and twice
-- `failedLimit` failed ones: the newest with and without a next attempt.
SELECT topic, state, count(*) AS count, LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', min(since))) * 1000, 0), 9007199254740991)::bigint AS oldest_age_ms
FROM (
  (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message m WHERE m.state = 0 AND m.next_retry_at IS NULL LIMIT $1::bigint)
  UNION ALL
  (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message m WHERE m.state = 0 AND m.next_retry_at IS NOT NULL LIMIT $1::bigint)
  UNION ALL
  (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message m WHERE m.state = 1 LIMIT $1::bigint)
  UNION ALL
  (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message m WHERE m.state = 3 AND m.next_retry_at IS NULL ORDER BY m.id DESC LIMIT $2::bigint)
  UNION ALL
  (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message m WHERE m.state = 3 AND m.next_retry_at IS NOT NULL ORDER BY m.next_retry_at DESC LIMIT $2::bigint)
  UNION ALL
  (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message m WHERE m.state = 5 AND m.next_retry_at IS NULL LIMIT $1::bigint)
  UNION ALL
  (SELECT m.topic AS topic, m.state AS state, m.gmt_create AS since FROM local_message m WHERE m.state = 5 AND m.next_retry_at IS NOT NULL LIMIT $1::bigint)) unfinished
GROUP BY topic, state;

-- =================================================================================================
-- Moving it away

-- lockFinished
-- The rows stay locked, so exactly the copied rows are deleted (rule: checked-move). ARRAY(…)
-- instead of IN (…): a generic plan takes an unknown LIMIT for a tenth of the table and walks all
-- of it.
SELECT m.id AS id FROM local_message m
WHERE m.id = ANY (ARRAY(SELECT next.id AS id FROM local_message next WHERE next.state = 2 AND next.next_retry_at IS NULL AND next.id > $1::bigint ORDER BY next.id LIMIT $2::bigint))
  AND m.state = 2 AND m.next_retry_at IS NULL AND COALESCE(m.sent_at, m.gmt_modified) <= statement_timestamp() - $3::bigint * interval '1 millisecond'
ORDER BY m.id
FOR UPDATE OF m SKIP LOCKED;

-- passFinished
-- Reads that many index entries and the next. No lock.
SELECT next.id AS id FROM local_message next WHERE next.state = 2 AND next.next_retry_at IS NULL AND next.id > $1::bigint ORDER BY next.id OFFSET $2::bigint LIMIT 1;

-- copyToArchive
-- The rows stay locked, so exactly the copied rows are deleted (rule: checked-move). ARRAY(…)
-- instead of IN (…): a generic plan takes an unknown LIMIT for a tenth of the table and walks all
-- of it.
INSERT INTO local_message_archive (id, message_type, message_key, topic, message_body, state, retry_count, next_retry_at, fail_reason, gmt_create, gmt_modified, last_retry_at, headers, content_type, ordering_key, delivery_count, deliver_at, message_id, lock_version, sent_at, consumed_at, created_by, updated_by, archived_at)
SELECT id, message_type, message_key, topic, message_body, state, retry_count, next_retry_at, fail_reason, gmt_create, gmt_modified, last_retry_at, headers, content_type, ordering_key, delivery_count, deliver_at, message_id, lock_version, sent_at, consumed_at, created_by, updated_by, statement_timestamp() FROM local_message WHERE id = ANY ($1::bigint[]);

-- deleteRows
-- The rows stay locked, so exactly the copied rows are deleted (rule: checked-move). ARRAY(…)
-- instead of IN (…): a generic plan takes an unknown LIMIT for a tenth of the table and walks all
-- of it.
DELETE FROM local_message WHERE id = ANY ($1::bigint[]);

-- purgeArchive
-- The rows stay locked, so exactly the copied rows are deleted (rule: checked-move). ARRAY(…)
-- instead of IN (…): a generic plan takes an unknown LIMIT for a tenth of the table and walks all
-- of it.
DELETE FROM local_message_archive WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM local_message_archive WHERE archived_at <= statement_timestamp() - $1::bigint * interval '1 millisecond' ORDER BY archived_at LIMIT $2::bigint));

-- =================================================================================================
-- What people do

-- find
-- Aliases: id lock_version, for the archive also archived_at as text. In id order; rows with the
-- same id by archived_at.
SELECT m.id AS id, m.lock_version AS lock_version FROM local_message AS m
WHERE m.message_type IN ($1) AND m.message_key = $2
ORDER BY m.id DESC LIMIT $3;

-- find, of a rare state
WITH found AS MATERIALIZED (
  (SELECT m.id AS id FROM local_message AS m WHERE m.state = 3 AND m.next_retry_at IS NULL AND m.topic = $1 ORDER BY m.id DESC LIMIT $2)
  UNION ALL
  (SELECT m.id AS id FROM local_message AS m WHERE m.state = 3 AND m.next_retry_at IS NOT NULL AND m.topic = $3)
)
SELECT m.id AS id, m.lock_version AS lock_version FROM (SELECT id FROM found ORDER BY id DESC LIMIT $4) AS f
JOIN local_message AS m ON m.id = f.id
ORDER BY m.id DESC;

-- find, by ids
SELECT m.id AS id, m.lock_version AS lock_version FROM local_message AS m
WHERE m.id >= 80001 AND strpos(m.fail_reason, $1) > 0
ORDER BY m.id DESC LIMIT $2;

-- chunkEnd
-- Alias: id, of the last of that many rows in this direction; no row if there are fewer. Walks the
-- primary key.
SELECT CAST(m.id AS text) AS id FROM local_message AS m
WHERE m.id <= 100000
ORDER BY m.id DESC LIMIT 1 OFFSET $1;

-- readMessages
-- Aliases of `MessageSummary` in snake_case, `state` raw; with `bodies` also message_body and
-- headers, for the archive also archived_at as in `find`. In any order.
SELECT CAST(m.id AS text) AS id,
  m.message_type AS message_type,
  m.message_key AS message_key,
  m.topic AS topic,
  m.state AS state,
  CAST(m.retry_count AS text) AS retry_count,
  COALESCE(to_char(m.next_retry_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.next_retry_at)::text) AS next_retry_at,
  m.fail_reason AS fail_reason,
  COALESCE(to_char(m.gmt_create AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.gmt_create)::text) AS gmt_create,
  COALESCE(to_char(m.gmt_modified AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.gmt_modified)::text) AS gmt_modified,
  COALESCE(to_char(m.last_retry_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.last_retry_at)::text) AS last_retry_at,
  m.content_type AS content_type,
  m.ordering_key AS ordering_key,
  CAST(m.delivery_count AS text) AS delivery_count,
  COALESCE(to_char(m.deliver_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.deliver_at)::text) AS deliver_at,
  m.message_id AS message_id,
  CAST(m.lock_version AS text) AS lock_version,
  COALESCE(to_char(m.sent_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.sent_at)::text) AS sent_at,
  COALESCE(to_char(m.consumed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.consumed_at)::text) AS consumed_at,
  m.created_by AS created_by,
  m.updated_by AS updated_by
FROM local_message AS m WHERE m.id = ANY ('{100}'::bigint[]);

-- nextType
-- Alias: message_type, the next after this one; NULL for none. One lookup in the unique key.
SELECT MIN(m.message_type) AS message_type FROM local_message AS m WHERE m.message_type > $1;

-- idBounds
-- Aliases: first_id last_id, NULL in an empty table. Two lookups, because SQLite walks the table
-- for one.
SELECT (SELECT CAST(MIN(m.id) AS text) FROM local_message AS m) AS first_id, (SELECT CAST(MAX(m.id) AS text) FROM local_message AS m) AS last_id;

-- createdFrom
-- Aliases: id gmt_create, of the first row at or after each of these ids; for the archive the first
-- two, which may share the id.
(SELECT CAST(m.id AS text) AS id, COALESCE(to_char(m.gmt_create AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.gmt_create)::text) AS gmt_create
  FROM local_message AS m WHERE m.id >= 100 ORDER BY m.id LIMIT $1)
UNION ALL
(SELECT CAST(m.id AS text) AS id, COALESCE(to_char(m.gmt_create AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.gmt_create)::text) AS gmt_create
  FROM local_message AS m WHERE m.id >= 200 ORDER BY m.id LIMIT $2);

-- createdOfLastArchived
-- Aliases: id gmt_create, of the last archived rows.
SELECT CAST(m.id AS text) AS id, COALESCE(to_char(m.gmt_create AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.gmt_create)::text) AS gmt_create
FROM local_message_archive AS m ORDER BY m.archived_at DESC LIMIT $1;

-- placeOf
-- Aliases: shard, clock (ISO text), due_in_ms, deliver_in_ms (NULL: no such time).
SELECT (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard, COALESCE(to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (statement_timestamp())::text) AS clock, CASE WHEN isfinite(statement_timestamp()) AND isfinite(m.next_retry_at) THEN (date_part('epoch', m.next_retry_at - statement_timestamp()) * 1000)::bigint END AS due_in_ms, CASE WHEN isfinite(statement_timestamp()) AND isfinite(m.deliver_at) THEN (date_part('epoch', m.deliver_at - statement_timestamp()) * 1000)::bigint END AS deliver_in_ms
FROM local_message AS m WHERE m.id = $1::bigint;

-- countWaiting
-- Aliases: kind count next_in_ms, of pending messages: `backoff`, `delayed`, `due` or `behind`; at
-- most about `limit` each; a kind may come in several rows. Reads ranges of the index on state and
-- time, and the rows of waiting messages.
SELECT CASE WHEN c.held THEN 'delayed' ELSE 'backoff' END AS kind, COUNT(*) AS count, MIN(c.in_ms) AS next_in_ms
FROM (SELECT COALESCE(m.deliver_at > statement_timestamp(), FALSE) AS held, CASE WHEN isfinite(statement_timestamp()) AND isfinite(m.next_retry_at) THEN (date_part('epoch', m.next_retry_at - statement_timestamp()) * 1000)::bigint END AS in_ms FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at > statement_timestamp() AND m.next_retry_at < '3000-01-01 00:00:00.000Z'::timestamptz LIMIT $1) AS c GROUP BY c.held
UNION ALL
SELECT 'due', COUNT(*), NULL FROM (SELECT 1 AS one FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at IS NULL LIMIT $2) AS c
UNION ALL
SELECT 'due', COUNT(*), NULL FROM (SELECT 1 AS one FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at <= statement_timestamp() LIMIT $3) AS c
UNION ALL
SELECT 'behind', COUNT(*), NULL FROM (SELECT 1 AS one FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at >= '3000-01-01 00:00:00.000Z'::timestamptz LIMIT $4) AS c;

-- readChanges
-- Aliases: made_at (ISO text) author action reason ids details. The newest `limit` changes by hand
-- that may include this message; `ids` tells.
SELECT COALESCE(to_char(a.made_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (a.made_at)::text) AS made_at, a.author AS author, a.action AS action, a.reason AS reason, a.ids AS ids, a.details AS details
FROM local_message_audit AS a WHERE a.table_name = 'local_message' AND a.first_id <= $1::bigint AND a.last_id >= $2::bigint ORDER BY a.id DESC LIMIT $3;

-- countStates
-- Aliases: state count. At most about `limit` each; a state may come in several rows. With `toSort`
-- counts only those that a page must sort, if an index has the others in id order. Reads only
-- indexes.
SELECT 3 AS state, COUNT(*) AS count FROM (
  SELECT 1 AS one FROM local_message AS m WHERE m.state = 3 AND m.next_retry_at IS NULL LIMIT $1) AS c
UNION ALL
SELECT 3 AS state, COUNT(*) AS count FROM (
  SELECT 1 AS one FROM local_message AS m WHERE m.state = 3 AND m.next_retry_at IS NOT NULL LIMIT $2) AS c;

-- oldestDue
-- Aliases: id topic waiting_ms. At most two rows: the first without a time, the first due.
(SELECT CAST(m.id AS text) AS id, m.topic AS topic, CASE WHEN m.gmt_create IS NOT NULL THEN LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', m.gmt_create)) * 1000, 0), 9007199254740991)::bigint END AS waiting_ms
  FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at IS NULL ORDER BY m.id LIMIT 1)
UNION ALL
(SELECT CAST(m.id AS text) AS id, m.topic AS topic, CASE WHEN m.next_retry_at IS NOT NULL THEN LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', m.next_retry_at)) * 1000, 0), 9007199254740991)::bigint END AS waiting_ms
  FROM local_message AS m WHERE m.state = 0 AND m.next_retry_at <= statement_timestamp() ORDER BY m.next_retry_at, m.id LIMIT 1);

-- countByState
-- Aliases: topic state count oldest_age_ms, over all states. Reads the whole table.
SELECT m.topic AS topic, m.state AS state, COUNT(*) AS count, CASE WHEN MIN(m.gmt_create) IS NOT NULL THEN LEAST(GREATEST((date_part('epoch', statement_timestamp()) - date_part('epoch', MIN(m.gmt_create))) * 1000, 0), 9007199254740991)::bigint END AS oldest_age_ms
FROM local_message AS m GROUP BY m.topic, m.state ORDER BY topic, state;

-- lockRows
-- Aliases: id state lock_version fail_reason. Locks these rows in id order, like every statement,
-- until the change in the same transaction. By the primary key: with few rows or stale statistics
-- MySQL walks the whole table and waits for other rows.
SELECT CAST(m.id AS text) AS id, m.state AS state, CAST(m.lock_version AS text) AS lock_version, m.fail_reason AS fail_reason
FROM local_message AS m WHERE m.id = ANY ('{100}'::bigint[]) ORDER BY m.id FOR UPDATE;

-- recordChange
-- Adds an audit row, which commits or rolls back with its change.
INSERT INTO local_message_audit (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
VALUES ('local_message', statement_timestamp(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- operatorRetry
-- lockRows has locked the rows; the states are checked again so that the statement is safe by
-- itself. Keeps the last error, but drops a suspension rule's words. Values: $1 author if the
-- layout has updated_by, then the suspension in milliseconds, then the ids.
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END, retry_count = 0, delivery_count = 0, fail_reason = CASE WHEN NOT starts_with(m.fail_reason, 'suspended by rule ') THEN m.fail_reason END, updated_by = $1::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($2::bigint[]) AND m.state IN (3, 2);

-- bringForward
-- lockRows has locked the rows; the states are checked again so that the statement is safe by
-- itself. Keeps the last error, but drops a suspension rule's words. Values: $1 author if the
-- layout has updated_by, then the suspension in milliseconds, then the ids.
UPDATE local_message m
SET next_retry_at = NULL, updated_by = $1::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($2::bigint[]) AND m.state = 0
  AND m.next_retry_at > statement_timestamp() AND m.next_retry_at < ('3000-01-01 00:00:00.000' || 'Z')::timestamptz
  AND (m.deliver_at > statement_timestamp()) IS NOT TRUE;

-- suspendRows
-- lockRows has locked the rows; the states are checked again so that the statement is safe by
-- itself. Keeps the last error, but drops a suspension rule's words. Values: $1 author if the
-- layout has updated_by, then the suspension in milliseconds, then the ids.
UPDATE local_message m
SET state = 5, next_retry_at = statement_timestamp() + $2::bigint * interval '1 millisecond', fail_reason = CASE WHEN NOT starts_with(m.fail_reason, 'suspended by rule ') THEN m.fail_reason END, updated_by = $1::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($3::bigint[]) AND m.state IN (0, 3);

-- resumeRows
-- lockRows has locked the rows; the states are checked again so that the statement is safe by
-- itself. Keeps the last error, but drops a suspension rule's words. Values: $1 author if the
-- layout has updated_by, then the suspension in milliseconds, then the ids.
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END, fail_reason = CASE WHEN NOT starts_with(m.fail_reason, 'suspended by rule ') THEN m.fail_reason END, updated_by = $1::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($2::bigint[]) AND m.state IN (5);

-- putSuspension
-- Locks only this rule. Relays read it at their next heartbeat.
INSERT INTO local_message_suspension (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES ('local_message', $1, $2, $3, $4, statement_timestamp() + $5::bigint * interval '1 millisecond', statement_timestamp())
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = EXCLUDED.reason, author = EXCLUDED.author, ends_at = EXCLUDED.ends_at, gmt_create = EXCLUDED.gmt_create;

-- deleteSuspension
-- Locks its one rule; later statements resume its messages.
DELETE FROM local_message_suspension WHERE table_name = 'local_message' AND scope = $1 AND value = $2;

-- listSuspendedBy
-- Aliases: id lock_version. Rows suspended by this rule, found by the beginning of fail_reason.
SELECT CAST(m.id AS text) AS id, CAST(m.lock_version AS text) AS lock_version FROM local_message AS m
WHERE m.state = 5 AND strpos(m.fail_reason COLLATE "C", $1) = 1
ORDER BY m.id LIMIT $2;
