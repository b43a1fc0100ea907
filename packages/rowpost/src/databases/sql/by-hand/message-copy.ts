/**
 * Sends a message anew with changes. One transaction writes the copy, changes the original, and
 * adds an audit entry for each that refers to the other.
 */

import type { CopyChange, CopyReport, CopyRequest, StoredMessage } from "../../../admin/message-admin.ts";
import { checkText, invalid, textFault } from "../../../message/check-text.ts";
import { decodeBody, decodeHeaders } from "../../../message/decode.ts";
import type { EncodedMessage } from "../../../message/encode.ts";
import { checkBody } from "../../../message/encode-body.ts";
import { encodeHeaders } from "../../../message/encode-headers.ts";
import { MESSAGE_STATES } from "../../../message/states.ts";
import type { MessageWriter } from "../../../outbox/message-writer.ts";
import { ConfigurationError } from "../../../runtime/errors.ts";
import type { Executor } from "../../../transactions/executor.ts";
import { spelled } from "../cold.ts";
import { createMessageSearch, type MessageSearch } from "../insight/search.ts";
import type { TableLayout } from "../layout.ts";
import type { StoreParts } from "../relay-store.ts";
import { clip } from "../rows.ts";
import { auditEntry } from "./changes-by-hand.ts";
import type { HandChange, HandChanges } from "./hand-changes.ts";
import { recordChange } from "./statements.ts";

/** Header of a copy with the id of its original. */
const COPY_OF_HEADER = "rowpost-copy-of";

export interface CopyParts extends Pick<StoreParts, "statements"> {
  readonly changes: HandChanges;
  readonly writer: MessageWriter;
  readonly inTransaction: <T>(work: (tx: Executor) => Promise<T>) => Promise<T>;
}

export type CopyMessage = (request: CopyRequest) => Promise<CopyReport>;

export function createMessageCopy(parts: CopyParts): CopyMessage {
  return (request) => parts.inTransaction((tx) => copyWithin(parts, tx, request));
}

/** Locks the original until both are written, so it is neither sent nor changed meanwhile. */
async function copyWithin(parts: CopyParts, tx: Executor, request: CopyRequest): Promise<CopyReport> {
  const { changes, statements } = parts;
  const { action, original, seen } = request;
  const { table } = statements;
  const search = createMessageSearch({
    table,
    read: async (statement) => (await tx.run(spelled(table.words, statement))).rows,
  });
  const aside =
    original === "keep" ? KEPT : original === "suspend" ? changes.suspend(null) : changes.remove("archive", true);
  let copyId: string | undefined;
  const change: HandChange = {
    name: "copy",
    allowed: aside.allowed,
    async write(_, ids, by) {
      const [stored] = await search.messages([seen], false);
      // The delay may forbid what the state allows; then there is no copy either.
      if (stored === undefined || (await aside.write(tx, ids, by)) === 0) return 0;
      copyId = await insertCopy(parts, { tx, search, request, stored });
      return 1;
    },
  };
  const details = (): string => JSON.stringify({ copyId, original });
  const { conflicts } = await changes.apply(tx, change, { rows: [seen], action, details });
  if (copyId !== undefined || conflicts.length > 0) return { copyId, conflicts };
  const archived = original === "keep" ? await archivedOne(search, seen.id) : undefined;
  if (archived === undefined) return { copyId, conflicts };
  copyId = await insertCopy(parts, { tx, search, request, stored: archived });
  const entry = { changed: 1, ids: [seen.id], details: details() };
  await tx.run(spelled(table.words, recordChange(table, auditEntry("copy", action, entry))));
  return { copyId, conflicts };
}

/** A kept original is not written, so any state will do. */
const KEPT: Pick<HandChange, "allowed" | "write"> = { allowed: MESSAGE_STATES, write: async (_, ids) => ids.length };

/** The newest row with this id: after a TRUNCATE of the message table there may be several. */
async function archivedOne(search: MessageSearch, id: string): Promise<StoredMessage | undefined> {
  const request = { filter: { ids: [id] }, limit: 1, newestFirst: true, archived: true, timeLimitMs: 1_000 };
  const { found } = await search.search(request);
  return (await search.messages(found, true))[0];
}

interface Copying {
  readonly tx: Executor;
  readonly search: MessageSearch;
  readonly request: CopyRequest;
  readonly stored: StoredMessage;
}

/** Writes the copy as an enqueue would, and returns its id. */
async function insertCopy(parts: CopyParts, { request, search, stored, tx }: Copying): Promise<string> {
  const { action, change } = request;
  const copy = encodeCopy(parts.statements.table.layout, stored, change, action.author);
  await parts.writer.insert(tx, [copy], { duplicates: "throw" });
  const { key, type } = copy;
  // A case-folding collation may return similar keys too.
  const wanted = { filter: { type, key }, limit: 100, newestFirst: true, archived: false, timeLimitMs: 1_000 };
  const messages = await search.summaries((await search.search(wanted)).found, false);
  const id = messages.find((each) => each.key === key && each.type === type)?.id;
  if (id === undefined) throw new Error(`the copy ${type}:${key} was inserted and cannot be seen`);
  const details = JSON.stringify({ copyOf: stored.id });
  const entry = auditEntry("copied", action, { changed: 1, ids: [id], details });
  const { table } = parts.statements;
  await tx.run(spelled(table.words, recordChange(table, entry)));
  return id;
}

/**
 * The copy as stored. Unchanged fields are copied as they are; only body and headers must be
 * sendable.
 */
function encodeCopy(
  { bodyType, columns, limits, name: layoutName }: TableLayout,
  stored: StoredMessage,
  change: CopyChange,
  author: string,
): EncodedMessage {
  const name = `the copy of message ${stored.id}`;
  const key = checkText(name, "key", change.key, limits.key);
  if (key === stored.key) throw invalid(name, `key is that of the original; consumers would take it for the same`);
  const body = change.body ?? stored.body;
  const contentType = stored.contentType ?? null;
  // Bytes have no such column; their first bytes show the type.
  const hasContentType = columns.contentType !== undefined || bodyType === "binary";
  const fault = textFault(body);
  if (fault !== undefined) throw invalid(name, `the body ${fault}`);
  const decoded = decodeBody({ body, contentType }, { hasContentType });
  if (decoded.broken !== undefined) throw invalid(name, decoded.broken);
  checkBody(name, { body, contentType }, limits.bodyBytes, bodyType);
  if (change.headers !== undefined && columns.headers === undefined)
    throw new ConfigurationError(`${name} has headers, but the layout ${layoutName} has no column for them`);
  return {
    type: stored.type,
    key,
    topic: checkText(name, "topic", change.topic ?? stored.topic, limits.topic),
    body,
    contentType,
    orderingKey: stored.orderingKey ?? null,
    delayMs: null,
    deliverAtMs: null,
    headers:
      columns.headers === undefined
        ? null
        : encodeHeaders(name, headersOf(name, stored, change), {
            [COPY_OF_HEADER]: stored.id,
          }),
    createdBy: clip(author, limits.createdBy),
  };
}

function headersOf(name: string, stored: StoredMessage, { headers }: CopyChange): Readonly<Record<string, string>> {
  if (headers !== undefined) return headers;
  const decoded = decodeHeaders(stored.headers ?? null);
  if (decoded.broken !== undefined) throw invalid(name, `${decoded.broken}: give it headers`);
  return Object.fromEntries(Object.entries(decoded.headers).filter(([each]) => !/^rowpost-/i.test(each)));
}
