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
-- One statement for any number of messages, one text for all of them: it can be prepared, and needs
-- no escaping of bodies. Measured with 100 messages of 400 bytes, not prepared: this 2.5 us of
-- client CPU a row, 1.1 ms in all; multi-row VALUES 2.5 us and 1.4 ms (its text has to be parsed
-- anew for every size); unnest of text arrays 6 to 8 us and 1.5 ms. With one message it is as fast
-- as plain VALUES (0.16 against 0.15 ms).
--
-- `$1::text::json` and not `$1::json`: postgres.js would make JSON of the text again. ids in the
-- order of the array, because the function scan feeds the identity column in that order. A
-- duplicate is left out, the transaction stays usable, and the caller sees it by its absence. Waits
-- only for another transaction that inserts the same identity. If the transaction does not commit,
-- nothing of it was there.
--
-- $2 is the mark of the call. With $3 the transaction must have it already, else nothing is
-- inserted: the INSERT of a call that nobody awaits may come behind the ROLLBACK. Without $3 it is
-- the first statement of the call, in its place by the order of the driver, and leaves the mark for
-- those after it. A sub-query, so that it is done once, before the first row.
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
-- No lock: that would need the UPDATE privilege, which who only enqueues has no use for.
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
-- Rows that two instances insert at once meet at the primary key; the second finds them there.
-- Nothing to lose when we die.
INSERT INTO local_message_shard (table_name, shard)
SELECT 'local_message', shard FROM generate_series(0, 15) AS missing (shard)
ON CONFLICT (table_name, shard) DO NOTHING;

-- reportInstance
-- Which relays run, and what they must not send. Each statement that writes locks the rows of the
-- registry that it writes, one or those of the dead, until its own end; no other statement does.
INSERT INTO local_message_relay (table_name, owner, label, seen_at) VALUES ('local_message', $1, $2, statement_timestamp())
ON CONFLICT (table_name, owner) DO UPDATE SET label = EXCLUDED.label, seen_at = EXCLUDED.seen_at;

-- writeReport
-- Which relays run, and what they must not send. Each statement that writes locks the rows of the
-- registry that it writes, one or those of the dead, until its own end; no other statement does.
UPDATE local_message_relay SET report = $1, reported_at = statement_timestamp() WHERE table_name = 'local_message' AND owner = $2;

-- readReports
-- Rows: owner, label, silent_ms (since its last sign of life), report, report_age_ms (NULL: none).
SELECT owner, label, CASE WHEN isfinite(seen_at) AND isfinite(statement_timestamp()) THEN (date_part('epoch', statement_timestamp() - seen_at) * 1000)::bigint END AS silent_ms, report, CASE WHEN isfinite(reported_at) AND isfinite(statement_timestamp()) THEN (date_part('epoch', statement_timestamp() - reported_at) * 1000)::bigint END AS report_age_ms
FROM local_message_relay WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') ORDER BY table_name, owner;

-- renew
-- Changes no key column, so it waits for no fence (see fenceClause), and a takeover that came first
-- shows in the epoch.
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
-- Rows: scope, value, reason, author, ends_in_ms. Those that have ended are left out.
SELECT scope, value, reason, author, CASE WHEN isfinite(statement_timestamp()) AND isfinite(ends_at) THEN (date_part('epoch', ends_at - statement_timestamp()) * 1000)::bigint END AS ends_in_ms
FROM local_message_suspension WHERE table_name = 'local_message' AND (ends_at IS NULL OR ends_at > statement_timestamp())
ORDER BY scope, value;

-- take
-- Locks the lease rows in shard order, so that two takers do not block each other crosswise, and
-- waits for every fenced statement under way (see fenceClause). Whoever comes second sees another
-- epoch and takes nothing. lease_until is compared as the text that was observed: it proves that
-- nobody renewed (rule: hand-over).
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
-- Its own statement, because it needs a snapshot from after the takeover's lock: in one statement
-- with it, 0 of 3 rows were seen (rule: takeover-fence). Locks the rows in `sending` that nobody
-- else holds. A plain UPDATE would wait for one that a user holds until the takeover fails as a
-- whole, at every heartbeat, for as long as his transaction is open; such a row is left for the
-- sweep of rule: watched-sending. If we die before the commit, the shards are as free as before.
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(SELECT m.id FROM local_message m
  WHERE m.state = 1 AND (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) = ANY ($1::integer[])
  FOR UPDATE SKIP LOCKED));

-- recoverListed
-- Locks the listed rows that nobody else holds; the lists are ours with the lease rows. A row that
-- a user holds is passed over, and this one delivery of it stays uncounted: the list cannot keep
-- it, because our first batch replaces the list (rule: listed-in-flight). That is safe: a late
-- settle of the old owner fails at the epoch, and the limit on crashes (rule: crash-counting) is
-- reached one crash later.
UPDATE local_message m
SET delivery_count = COALESCE(m.delivery_count, 0) + 1, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(SELECT m.id
  FROM (SELECT unnest(lease.in_flight) AS id FROM local_message_shard lease WHERE lease.table_name = 'local_message' AND lease.shard = ANY ($1::integer[])) AS listed
  JOIN local_message m ON m.id = listed.id
  WHERE m.state = 0
  FOR UPDATE OF m SKIP LOCKED));

-- clearListed
-- Of a takeover, whose transaction has these lease rows locked.
UPDATE local_message_shard SET in_flight = '{}' WHERE table_name = 'local_message' AND shard = ANY ($1::integer[]);

-- release
-- The epoch stays: the next owner raises it, and until then no fence of ours finds its owner.
UPDATE local_message_shard lease
SET owner = NULL, lease_until = statement_timestamp(), in_flight = '{}'
FROM unnest($2::integer[], $3::bigint[]) AS held (shard, epoch)
WHERE lease.table_name = 'local_message' AND lease.owner = $1 AND lease.shard = held.shard AND lease.epoch = held.epoch;

-- removeInstance
-- Which relays run, and what they must not send. Each statement that writes locks the rows of the
-- registry that it writes, one or those of the dead, until its own end; no other statement does.
DELETE FROM local_message_relay WHERE table_name = 'local_message' AND owner = $1;

-- forgetInstances
-- Which relays run, and what they must not send. Each statement that writes locks the rows of the
-- registry that it writes, one or those of the dead, until its own end; no other statement does.
DELETE FROM local_message_relay WHERE table_name >= 'local_message' AND table_name < 'local_message$' AND (table_name = 'local_message' OR table_name > 'local_message#') AND seen_at < statement_timestamp() - interval '1 day';

-- =================================================================================================
-- Finding what waits

-- scan
-- Two walks, each along a partial index that is in the order of its ORDER BY, so that each ends
-- after LIMIT rows whatever else is in the table: the waiting rows by id, and the rows whose time
-- has come by time. A row of a shard that is not asked for takes its place in the LIMIT and comes
-- back without its body (rule: bounded-scan): the walk stays bounded, and the sweep knows how far
-- it went. A program that inserts with plain SQL may have set deliver_at alone; such a row is
-- waiting, and is left out here until it is due.
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
-- The same two walks for each topic, along the partial index on waiting rows by topic, for ids
-- alone; the rows are read by id. The walk of rows without a time is asked for in the order of
-- (next_retry_at, id), which is that of their ids and not that of the primary key, so that no plan
-- walks all ids for a few rows of one topic. Topics and limits stand as constants, without a
-- parameter: what is prepared is planned for no topic in particular, and then walks all that are
-- due. Each text is planned anew.
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
-- min of a range of the index on waiting rows by topic: one look into it for each.
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
-- For each key the rows that may stand in front of its scanned ones (rule: key-order), by the index
-- on unfinished keyed rows. The index lists the same four states as this statement at its widest,
-- so that the planner can prove that it holds them all. No COLLATE: a parameter takes the column's
-- collation, ours or that of a user's own table, and with it the index; every deterministic
-- collation is equal by bytes (rule: exact-bytes).
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
-- Locks the lease rows (key share), then the message rows in the order given. Another relay cannot
-- claim them, because the shards are ours; a person's change shows in state and lock_version, which
-- are looked at again after waiting for his lock. If we die right after it: the rows are `sending`,
-- and whoever takes the shard returns them to pending.
--
-- `skipLocked`: locks what nobody holds in a CTE of its own, after the lease rows, and claims that;
-- a row that a user holds is passed over.
--
-- Writes fixed-size columns only. No HOT update is possible: `state` stands in the predicates of
-- the partial indexes, as it must, or the scan would walk over everything that was ever sent.
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
-- Reads a claim back whose answer was lost or whose count differed. The lease rows are locked like
-- in the claim, so that a takeover is either seen here or comes after; a claim that still runs on
-- the old connection holds the message rows, but this read does not wait for it, it reports what
-- has been committed (rule: watched-sending: what is not certainly ours is not published).
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
-- The claim without a mark: the ids in flight stand in the lease rows (rule: listed-in-flight). The
-- statement changes the lease row itself, so owner and epoch are checked under its lock; one that
-- waited for a takeover looks again and finds another epoch. If we die right after it: the taker of
-- the shard counts a delivery for the listed ids.
UPDATE local_message_shard lease
SET in_flight = listed.ids::bigint[]
FROM unnest($2::integer[], $3::bigint[], $4::text[]) AS listed (shard, epoch, ids)
WHERE lease.table_name = 'local_message' AND lease.owner = $1 AND lease.shard = listed.shard AND lease.epoch = listed.epoch;

-- readHeld
-- Alias: shard. Held shards at their epochs (which of the lists were written).
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
-- A row that a confirmation overtook into `consumed` only gets its receipt. Its lock_version moved
-- with the confirmation, so the claim is told by delivery_count there. Both kinds of rows are
-- locked in the order given, after the lease rows. If we die right after it: done.
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
-- rows. If we die before it, the message is sent again, with the same identity; right after it:
-- done.
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
-- Failures and uncounted returns: pending with a time, or failed. The start of the attempt is
-- written where there was one (retry_delta 1). Locks like the settle of sent rows. If we die right
-- after it: done.
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
-- Rows as they are now. Aliases: id state delivery_count lock_version.
SELECT m.id AS id, m.state AS state, m.delivery_count AS delivery_count, m.lock_version AS lock_version, hashtextextended(COALESCE(m.message_type::text, '') COLLATE "C", hashtextextended(COALESCE(m.message_key::text, '') COLLATE "C", 0)) AS identity_hash
FROM local_message m
WHERE m.id = ANY ($1::bigint[]);

-- lockFreeRows
-- The lock that an UPDATE takes anyway; whoever waits for it waits for this short transaction.
SELECT m.id AS id
FROM local_message m
WHERE m.id = ANY ($1::bigint[])
ORDER BY m.id
FOR NO KEY UPDATE SKIP LOCKED;

-- =================================================================================================
-- What consumers report

-- confirmIdentities
-- Locks the rows in the order of their ids, as everything does that locks several. What somebody
-- else changed while this waited for it is at another place, which this statement does not see: it
-- stays as it is, the count tells so, and lockIdentities finds it. By places, and from arrays, 500
-- rows take 0.92 of the rate of a bare UPDATE; by ids and from JSON 0.83 (PostgreSQL 15). A table
-- of one's own may have partitions, and a place is then several rows'. If we die right after it,
-- the transaction rolls back, and the consumer confirms again.
UPDATE local_message m
SET state = 4, next_retry_at = NULL, consumed_at = statement_timestamp(), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.ctid = ANY (ARRAY(
  SELECT m.ctid FROM unnest($1::text[], $2::text[]) AS wanted (type, key)
  JOIN local_message m ON m.message_type = wanted.type AND m.message_key = wanted.key
  WHERE m.state IN (2, 1, 0, 3, 5)
  ORDER BY m.id
  FOR UPDATE OF m)) AND m.state IN (2, 1, 0, 3, 5);

-- lockIdentities
-- Holds the rows until the transaction ends.
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
-- The rows are locked by lockIdentities.
UPDATE local_message m
SET state = 4, next_retry_at = NULL, consumed_at = statement_timestamp(), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($1::bigint[]) AND m.state IN (2, 1, 0, 3, 5);

-- confirmArchived
-- Locked by lockIdentities.
UPDATE local_message_archive m
SET state = 4, next_retry_at = NULL, consumed_at = statement_timestamp(), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM json_to_recordset($1::text::json) AS wanted (type text, key text)
WHERE m.message_type = wanted.type AND m.message_key = wanted.key AND m.state IN (2, 1, 0, 3, 5);

-- touchRows
-- A new version of the row: a transaction that confirms for another consumer, and has looked at the
-- table before, fails instead of counting without this one.
UPDATE local_message m
SET lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($1::bigint[]);

-- reportFailed
-- Locked by lockIdentities.
UPDATE local_message m
SET fail_reason = reported.reason, next_retry_at = statement_timestamp(), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM unnest($1::bigint[], $2::text[]) AS reported (id, reason)
WHERE m.id = reported.id AND m.state = 2;

-- addConfirmations
-- Adds rows of messages that lockIdentities holds; nobody else adds to the same ones.
INSERT INTO local_message_confirmation (table_name, message, consumer, confirmed_at)
SELECT 'local_message', added.id, added.consumer, statement_timestamp()
FROM unnest($1::bigint[], $2::text[]) AS added (id, consumer)
ON CONFLICT (table_name, message, consumer) DO NOTHING;

-- readConfirmations
-- No lock: their messages are locked, and whoever had them before us has committed.
SELECT c.message::text AS id, c.consumer::text COLLATE "C" AS consumer
FROM local_message_confirmation c
WHERE c.table_name = 'local_message' AND c.message = ANY ($1::bigint[]);

-- forgetConfirmations
-- Locks entries that nobody changes any more. If we die right after it, those are gone that were to
-- go.
DELETE FROM local_message_confirmation WHERE ctid = ANY (ARRAY(
  SELECT c.ctid FROM local_message_confirmation c
  WHERE c.table_name = 'local_message' AND c.confirmed_at <= statement_timestamp() - $1::bigint * interval '1 millisecond'
  ORDER BY c.confirmed_at LIMIT $2::bigint));

-- countUnknown
-- A plain read: two that count at once may both add, and pass the limit by a call each.
SELECT count(*) AS kept FROM (SELECT 1 FROM local_message_unmatched WHERE table_name = 'local_message' LIMIT $1::bigint) AS u;

-- keepUnknown
-- Locks the entries of these identities, in the order of the rows, which all calls keep. If we die
-- right after it, nothing is kept, and the confirmations stand: they have committed before.
INSERT INTO local_message_unmatched AS u (table_name, message_type, message_key, consumer, reason, times, first_at, last_at)
SELECT 'local_message', said.type, said.key, said.consumer, said.reason, said.times, statement_timestamp(), statement_timestamp()
FROM json_to_recordset($1::text::json) AS said (type text, key text, consumer text, reason text, times bigint)
ON CONFLICT (table_name, message_type, message_key, consumer)
DO UPDATE SET reason = EXCLUDED.reason, times = u.times + EXCLUDED.times, last_at = EXCLUDED.last_at;

-- forgetUnknown
-- Locks entries that are old. The age stands in it twice: one that is said again meanwhile is
-- looked at again under the lock, and stays. If we die right after it, those are gone that were to
-- go.
DELETE FROM local_message_unmatched u WHERE u.ctid = ANY (ARRAY(
  SELECT old.ctid FROM local_message_unmatched old
  WHERE old.table_name = 'local_message' AND old.last_at <= statement_timestamp() - $1::bigint * interval '1 millisecond'
  ORDER BY old.last_at LIMIT $2::bigint)) AND u.last_at <= statement_timestamp() - $1::bigint * interval '1 millisecond';

-- =================================================================================================
-- Not now

-- setBehind
-- Locks the lease rows (key share), then the heads that still stand there and nobody holds, then
-- the followers that nobody holds. The head's lock is what makes it safe: a settle of the head
-- either has committed, then it is not unfinished any more, or holds it, then it is passed over
-- here, or waits for us, and finds the followers when it brings them back. A plain read would see
-- the head as it was before a settle that commits a moment later, and that settle would not see our
-- followers: they would stand behind nobody. If we die right after it, they are brought back by
-- whoever settles the head.
--
-- `free` brings all that the change needs: joined to it once more, the planner, which knows nothing
-- of the size of either, compared each follower with each (500 rows: 330 ms, now 26, on a busy
-- machine).
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
-- Locks the rows that it changes, and passes over what others hold. Not fenced: whoever settles or
-- moves a head brings its followers back, and to do it twice changes nothing. One walk for each
-- head, as far as the limit leaves room. A range of one millisecond and not an equality: with that
-- the planner takes next_retry_at out of the order, and may walk the primary key for the rest.
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
-- min of a range of the index of timed rows: one look into it.
SELECT COALESCE(to_char(min(m.next_retry_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (min(m.next_retry_at))::text) AS instant
FROM local_message m
WHERE m.state = 0 AND m.next_retry_at > ($1::text || 'Z')::timestamptz;

-- park
-- They lock the lease rows (key share), then those of the message rows that nobody holds: one that
-- a user holds keeps no other waiting, and is met again. Nobody but us may claim them; a person's
-- change since the scan shows in the token. If we die right after it, each row is either as it was
-- or as decided.
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
-- so that a second call goes on where the first ended; never a delayed one (rule:
-- delay-is-not-retry), nor one that is set behind. Of failed ones the slow retry comes due. Locks
-- them; a claim of one that came due meanwhile is skipped.
UPDATE local_message m
SET next_retry_at = statement_timestamp() + ramp.place * $3::bigint * interval '1 millisecond', lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
FROM (SELECT picked.id, row_number() OVER (ORDER BY picked.id) - 1 + $6::bigint AS place FROM (
    SELECT m.id AS id FROM local_message m
    WHERE m.state IN (0, 3) AND m.next_retry_at > statement_timestamp() + $2::bigint * $3::bigint * interval '1 millisecond' AND m.next_retry_at < ('3000-01-01 00:00:00.000' || 'Z')::timestamptz AND m.topic = $1 AND (m.deliver_at > statement_timestamp()) IS NOT TRUE
    ORDER BY m.id LIMIT $4::bigint OFFSET $5::bigint FOR UPDATE SKIP LOCKED) picked) ramp
WHERE m.id = ramp.id;

-- readClock
-- For a clock that was set back. Locks rows that nobody holds, in id order; no relay works on them,
-- because they are not due. If we die right after it: those rows are due, and the others are found
-- by nobody until their time comes.
SELECT (date_part('epoch', statement_timestamp()) * 1000)::bigint AS now_ms;

-- shortenWaits
-- For a clock that was set back. Locks rows that nobody holds, in id order; no relay works on them,
-- because they are not due. If we die right after it: those rows are due, and the others are found
-- by nobody until their time comes.
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
-- They lock the lease rows (key share), then those of the message rows that nobody holds: one that
-- a user holds keeps no other waiting, and is met again. Nobody but us may claim them; a person's
-- change since the scan shows in the token. If we die right after it, each row is either as it was
-- or as decided.
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
-- They lock the lease rows (key share), then those of the message rows that nobody holds: one that
-- a user holds keeps no other waiting, and is met again. Nobody but us may claim them; a person's
-- change since the scan shows in the token. If we die right after it, each row is either as it was
-- or as decided.
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
-- Fenced, and only the very claim that was seen twice (rule: watched-sending): a row that was
-- settled or claimed since has another token. Locks the lease rows, then the rows that nobody
-- holds: one that a user holds is left for the next look, and keeps nobody else waiting.
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
-- Three walks along the index of timed rows, each in its order; only their ends are sorted
-- together.
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
-- Locks the rows in id order; a person or a consumer who changed one since it was listed has moved
-- its token, and wins. If we die right after it, every row is either as decided or still due.
--
-- `skipLocked`: locks what nobody holds in a CTE of its own, and changes that. A row that a user
-- holds is still due and comes again.
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
-- Alias: id. What the two statements that follow are about; locks nothing.
(SELECT m.id AS id FROM local_message m WHERE (state IN (0, 1, 2, 3, 4, 5)) IS NOT TRUE ORDER BY m.id LIMIT $1::bigint)
UNION ALL
(SELECT m.id AS id FROM local_message m WHERE id < 1 AND state = 0 ORDER BY m.id LIMIT $1::bigint);

-- failUnknownStates
-- Rows that somebody else has locked are left for the next round. If we die right after it: they
-- are failed, and a person sees why.
UPDATE local_message m
SET state = 3, next_retry_at = NULL,
  fail_reason = left('UNKNOWN_STATE: the state was ' || COALESCE(m.state::text, 'NULL') || ', which is none of 0, 1, 2, 3, 4, 5; somebody changed the row by hand', 1024), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(SELECT id FROM local_message WHERE id = ANY ($1::bigint[]) AND (state IN (0, 1, 2, 3, 4, 5)) IS NOT TRUE ORDER BY id FOR UPDATE SKIP LOCKED));

-- failUnreached
-- Rows that somebody else has locked are left for the next round. If we die right after it: they
-- are failed, and a person sees why.
UPDATE local_message m
SET state = 3, next_retry_at = NULL,
  fail_reason = left('ID_BELOW_ONE: ids begin at 1, and no relay looks below; insert the message again with an id of the column itself' || ' (this one: ' || m.id || ')', 1024), lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY (ARRAY(SELECT id FROM local_message WHERE id = ANY ($1::bigint[]) AND id < 1 AND state = 0 ORDER BY id FOR UPDATE SKIP LOCKED));

-- gauges
-- Aliases: topic state count oldest_age_ms. Reads at most `limit` rows of each state, and twice
-- `failedLimit` of the failed ones: the newest of those with a next look, and of those without.
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
-- The rows stay locked until the end of the transaction, so what is copied is what is deleted
-- (rule: checked-move). ARRAY(…) and not IN (…): a generic plan takes an unknown LIMIT for a tenth
-- of the table, and then walks all of it to join.
SELECT m.id AS id FROM local_message m
WHERE m.id = ANY (ARRAY(SELECT next.id AS id FROM local_message next WHERE next.state = 2 AND next.next_retry_at IS NULL AND next.id > $1::bigint ORDER BY next.id LIMIT $2::bigint))
  AND m.state = 2 AND m.next_retry_at IS NULL AND COALESCE(m.sent_at, m.gmt_modified) <= statement_timestamp() - $3::bigint * interval '1 millisecond'
ORDER BY m.id
FOR UPDATE OF m SKIP LOCKED;

-- passFinished
-- Reads that many entries of the index and the next; no lock.
SELECT next.id AS id FROM local_message next WHERE next.state = 2 AND next.next_retry_at IS NULL AND next.id > $1::bigint ORDER BY next.id OFFSET $2::bigint LIMIT 1;

-- copyToArchive
-- The rows stay locked until the end of the transaction, so what is copied is what is deleted
-- (rule: checked-move). ARRAY(…) and not IN (…): a generic plan takes an unknown LIMIT for a tenth
-- of the table, and then walks all of it to join.
INSERT INTO local_message_archive (id, message_type, message_key, topic, message_body, state, retry_count, next_retry_at, fail_reason, gmt_create, gmt_modified, last_retry_at, headers, content_type, ordering_key, delivery_count, deliver_at, message_id, lock_version, sent_at, consumed_at, created_by, updated_by, archived_at)
SELECT id, message_type, message_key, topic, message_body, state, retry_count, next_retry_at, fail_reason, gmt_create, gmt_modified, last_retry_at, headers, content_type, ordering_key, delivery_count, deliver_at, message_id, lock_version, sent_at, consumed_at, created_by, updated_by, statement_timestamp() FROM local_message WHERE id = ANY ($1::bigint[]);

-- deleteRows
-- The rows stay locked until the end of the transaction, so what is copied is what is deleted
-- (rule: checked-move). ARRAY(…) and not IN (…): a generic plan takes an unknown LIMIT for a tenth
-- of the table, and then walks all of it to join.
DELETE FROM local_message WHERE id = ANY ($1::bigint[]);

-- purgeArchive
-- The rows stay locked until the end of the transaction, so what is copied is what is deleted
-- (rule: checked-move). ARRAY(…) and not IN (…): a generic plan takes an unknown LIMIT for a tenth
-- of the table, and then walks all of it to join.
DELETE FROM local_message_archive WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM local_message_archive WHERE archived_at <= statement_timestamp() - $1::bigint * interval '1 millisecond' ORDER BY archived_at LIMIT $2::bigint));

-- =================================================================================================
-- What people do

-- find
-- Aliases: id lock_version, of the archive also archived_at as text. In the order of ids, and rows
-- of one id in that of archived_at.
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
-- Alias: id, of the last of so many rows in this direction; no row when there are fewer. Walks the
-- primary key.
SELECT CAST(m.id AS text) AS id FROM local_message AS m
WHERE m.id <= 100000
ORDER BY m.id DESC LIMIT 1 OFFSET $1;

-- readMessages
-- The aliases of `MessageSummary` in snake_case, `state` raw; with `bodies` also message_body and
-- headers, of the archive also archived_at as `find` gives it. In any order.
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
-- Alias: message_type, the next one behind this; NULL for none. One look into the unique key.
SELECT MIN(m.message_type) AS message_type FROM local_message AS m WHERE m.message_type > $1;

-- idBounds
-- Aliases: first_id last_id, NULL in an empty table. As one look-up SQLite walks the table.
SELECT (SELECT CAST(MIN(m.id) AS text) FROM local_message AS m) AS first_id, (SELECT CAST(MAX(m.id) AS text) FROM local_message AS m) AS last_id;

-- createdFrom
-- Aliases: id gmt_create, of the first row from each of these ids on, where there is one; of the
-- archive the first two, which may have the same id.
(SELECT CAST(m.id AS text) AS id, COALESCE(to_char(m.gmt_create AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.gmt_create)::text) AS gmt_create
  FROM local_message AS m WHERE m.id >= 100 ORDER BY m.id LIMIT $1)
UNION ALL
(SELECT CAST(m.id AS text) AS id, COALESCE(to_char(m.gmt_create AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.gmt_create)::text) AS gmt_create
  FROM local_message AS m WHERE m.id >= 200 ORDER BY m.id LIMIT $2);

-- createdOfLastArchived
-- Aliases: id gmt_create, of the rows that were archived last.
SELECT CAST(m.id AS text) AS id, COALESCE(to_char(m.gmt_create AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (m.gmt_create)::text) AS gmt_create
FROM local_message_archive AS m ORDER BY m.archived_at DESC LIMIT $1;

-- placeOf
-- Aliases: shard, clock (ISO text), due_in_ms, deliver_in_ms (NULL: there is no such time).
SELECT (hashtext(COALESCE(m.ordering_key, m.message_key, '') COLLATE "C") & 15) AS shard, COALESCE(to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (statement_timestamp())::text) AS clock, CASE WHEN isfinite(statement_timestamp()) AND isfinite(m.next_retry_at) THEN (date_part('epoch', m.next_retry_at - statement_timestamp()) * 1000)::bigint END AS due_in_ms, CASE WHEN isfinite(statement_timestamp()) AND isfinite(m.deliver_at) THEN (date_part('epoch', m.deliver_at - statement_timestamp()) * 1000)::bigint END AS deliver_in_ms
FROM local_message AS m WHERE m.id = $1::bigint;

-- countWaiting
-- Aliases: kind count next_in_ms, of pending messages: `backoff`, `delayed`, `due` or `behind`; at
-- most about `limit` of each; a kind may come in several rows. Ranges of the index on the state and
-- the time; of those that wait also the rows.
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
-- that may have changed this message: `ids` says whether they have.
SELECT COALESCE(to_char(a.made_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (a.made_at)::text) AS made_at, a.author AS author, a.action AS action, a.reason AS reason, a.ids AS ids, a.details AS details
FROM local_message_audit AS a WHERE a.table_name = 'local_message' AND a.first_id <= $1::bigint AND a.last_id >= $2::bigint ORDER BY a.id DESC LIMIT $3;

-- countStates
-- Aliases: state count. At most about `limit` of each; a state may come in several rows. With
-- `toSort` only those that a page of these states has to sort, where an index has the others in the
-- order of ids. Reads indexes and no row.
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
-- Aliases: id state lock_version fail_reason. Locks the rows of these ids until the change that
-- follows in the same transaction; in id order, like everything else that locks several messages.
-- By the primary key: in a table of a few rows, or with old statistics, MySQL walks the whole table
-- instead, and then locks and waits for rows that are not meant.
SELECT CAST(m.id AS text) AS id, m.state AS state, CAST(m.lock_version AS text) AS lock_version, m.fail_reason AS fail_reason
FROM local_message AS m WHERE m.id = ANY ('{100}'::bigint[]) ORDER BY m.id FOR UPDATE;

-- recordChange
-- Adds a row of its own to the audit; commits, or does not, with the change that it tells of.
INSERT INTO local_message_audit (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
VALUES ('local_message', statement_timestamp(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- operatorRetry
-- The rows are locked by lockRows already; the states are looked at once more because a statement
-- must not depend on another's care. The last error stays; what a rule said when it suspended the
-- row is over. Values: $1 author where the layout has updated_by, then the milliseconds of a
-- suspension, then the ids.
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END, retry_count = 0, delivery_count = 0, fail_reason = CASE WHEN NOT starts_with(m.fail_reason, 'suspended by rule ') THEN m.fail_reason END, updated_by = $1::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($2::bigint[]) AND m.state IN (3, 2);

-- bringForward
-- The rows are locked by lockRows already; the states are looked at once more because a statement
-- must not depend on another's care. The last error stays; what a rule said when it suspended the
-- row is over. Values: $1 author where the layout has updated_by, then the milliseconds of a
-- suspension, then the ids.
UPDATE local_message m
SET next_retry_at = NULL, updated_by = $1::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($2::bigint[]) AND m.state = 0
  AND m.next_retry_at > statement_timestamp() AND m.next_retry_at < ('3000-01-01 00:00:00.000' || 'Z')::timestamptz
  AND (m.deliver_at > statement_timestamp()) IS NOT TRUE;

-- suspendRows
-- The rows are locked by lockRows already; the states are looked at once more because a statement
-- must not depend on another's care. The last error stays; what a rule said when it suspended the
-- row is over. Values: $1 author where the layout has updated_by, then the milliseconds of a
-- suspension, then the ids.
UPDATE local_message m
SET state = 5, next_retry_at = statement_timestamp() + $2::bigint * interval '1 millisecond', fail_reason = CASE WHEN NOT starts_with(m.fail_reason, 'suspended by rule ') THEN m.fail_reason END, updated_by = $1::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($3::bigint[]) AND m.state IN (0, 3);

-- resumeRows
-- The rows are locked by lockRows already; the states are looked at once more because a statement
-- must not depend on another's care. The last error stays; what a rule said when it suspended the
-- row is over. Values: $1 author where the layout has updated_by, then the milliseconds of a
-- suspension, then the ids.
UPDATE local_message m
SET state = 0, next_retry_at = CASE WHEN m.deliver_at > statement_timestamp() THEN m.deliver_at END, fail_reason = CASE WHEN NOT starts_with(m.fail_reason, 'suspended by rule ') THEN m.fail_reason END, updated_by = $1::text, lock_version = COALESCE(m.lock_version, 0) + 1, gmt_modified = statement_timestamp()
WHERE m.id = ANY ($2::bigint[]) AND m.state IN (5);

-- putSuspension
-- Locks its one rule. Relays read it at their next heartbeat.
INSERT INTO local_message_suspension (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES ('local_message', $1, $2, $3, $4, statement_timestamp() + $5::bigint * interval '1 millisecond', statement_timestamp())
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = EXCLUDED.reason, author = EXCLUDED.author, ends_at = EXCLUDED.ends_at, gmt_create = EXCLUDED.gmt_create;

-- deleteSuspension
-- Locks its one rule; the messages under it are resumed by the statements after it.
DELETE FROM local_message_suspension WHERE table_name = 'local_message' AND scope = $1 AND value = $2;

-- listSuspendedBy
-- Aliases: id lock_version. Rows suspended by this rule, told by the beginning of fail_reason.
SELECT CAST(m.id AS text) AS id, CAST(m.lock_version AS text) AS lock_version FROM local_message AS m
WHERE m.state = 5 AND strpos(m.fail_reason COLLATE "C", $1) = 1
ORDER BY m.id LIMIT $2;
