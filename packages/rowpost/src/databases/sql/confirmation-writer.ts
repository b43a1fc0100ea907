/**
 * Consumers' reports on any SQL database, in a user's transaction or our own. Messages are locked
 * before they are read: the later of two parallel confirmations waits and then counts the first
 * (rule: confirmation).
 */
import type { MessageState } from "../../message/states.ts";
import type { CheckedConfirmation, ConfirmationResult, ConfirmationWriter } from "../../outbox/confirmations.ts";
import { inAscii } from "../../runtime/ascii.ts";
import { DatabaseConflictError, InvalidMessageError, TransactionRequiredError } from "../../runtime/errors.ts";
import type { Executor, QueryResult, Statement } from "../../transactions/executor.ts";
import type { ConfirmStatements, Identity } from "./confirm-statements.ts";
import type { TableLayout } from "./layout.ts";
import { refusedLetter } from "./plain-words.ts";
import { clip, decodeState, integer, lowerCased, text } from "./rows.ts";
import type { UnknownRow } from "./unknown-statements.ts";

export interface ConfirmationParts {
  readonly layout: TableLayout;
  readonly statements: { readonly confirm: ConfirmStatements };
  readonly isOutsideTransaction?: ((error: unknown) => boolean) | undefined;
  readonly lackedLetter?: ((error: unknown) => string | undefined) | undefined;
  readonly unfitSession?: ((error: unknown) => Error | undefined) | undefined;
  readonly translateError: (error: unknown, statement: string) => unknown;
}

/** Beginning of `fail_reason` while a consumer's report waits for a relay. */
const NOT_CONSUMED = "NOT_CONSUMED";
/** More confirmations of unknown messages are not kept: they have one cause. */
const MOST_UNKNOWN = 10_000;
const UNKNOWN_REASON = 1024;

interface Found {
  readonly id: string;
  readonly state: MessageState | "unknown";
  readonly deliveryCount: number;
  readonly archived: boolean;
}

type Run = (statement: Statement) => Promise<QueryResult>;

export function createConfirmationWriter(parts: ConfirmationParts): ConfirmationWriter {
  const { confirm } = parts.statements;
  return {
    async confirm(tx, confirmations) {
      const run = await begin(parts, tx, confirmations);
      const identities = sortedIdentities(confirmations);
      const short = confirmations.every(({ consumers, error }) => consumers === undefined && error === undefined);
      if (short && confirm.confirmIdentities !== undefined) {
        const { affected } = await run(confirm.confirmIdentities(identities));
        if (affected === identities.length) return confirmations.map(() => ({ status: "consumed" }));
      }
      const found = await lock(parts, run, identities);
      const missing = await missingConsumers(parts, run, confirmations, found);
      await consume(parts, run, confirmations, { found, missing });
      const reported = await reportFailures(parts, run, confirmations, found);
      return confirmations.map((each) => resultOf(each, { found, missing, reported }));
    },

    async keepUnknown(tx, confirmations) {
      const run = await begin(parts, tx, confirmations);
      const [counted] = (await run(confirm.countUnknown(MOST_UNKNOWN))).rows;
      if (counted === undefined || integer(lowerCased(counted), "kept") >= MOST_UNKNOWN) return false;
      await withReasons(run, unknownRows(confirmations), UNKNOWN_REASON, (rows) => confirm.keepUnknown(rows));
      return true;
    },
  };
}

/** Refuses a handle without a transaction, and translates errors of statements. */
async function begin(
  { isOutsideTransaction, lackedLetter, translateError, unfitSession }: ConfirmationParts,
  tx: Executor,
  confirmations: readonly CheckedConfirmation[],
): Promise<Run> {
  if (tx.inTransaction !== undefined && !(await (tx.inTransaction() ?? tx.askServer?.()))) throw outsideTransaction();
  return async (statement) => {
    try {
      return await tx.run(statement);
    } catch (error) {
      if (isOutsideTransaction?.(error) === true) throw outsideTransaction(error);
      const letter = refusedLetter(confirmations, lackedLetter?.(error), error);
      throw letter ?? unfitSession?.(error) ?? translateError(error, `confirm, ${statement.name}`);
    }
  };
}

function outsideTransaction(cause?: unknown): TransactionRequiredError {
  return new TransactionRequiredError(
    "the connection is in no transaction, or no longer in the one of this call: begin one, or leave it out, and outbox.confirm begins its own; if you have begun one, it ended before this call: put await before outbox.confirm. Nothing was confirmed.",
    { cause },
  );
}

/** Unique, in the lock order of all confirmations. */
function sortedIdentities(confirmations: readonly Identity[]): readonly Identity[] {
  const byName = new Map(confirmations.map(({ type, key }) => [nameOf({ type, key }), { type, key }]));
  return [...byName].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, identity]) => identity);
}

/** Unique by identity and consumer, in the write order of all calls. */
function unknownRows(confirmations: readonly CheckedConfirmation[]): readonly UnknownRow[] {
  const rows = new Map<string, UnknownRow>();
  for (const { consumer = "", error, key, type } of confirmations) {
    const name = `${nameOf({ type, key })}\0${consumer}`;
    const reason = error === undefined ? null : clip(storable(error), UNKNOWN_REASON);
    rows.set(name, { type, key, consumer, reason, times: (rows.get(name)?.times ?? 0) + 1 });
  }
  return [...rows].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, row]) => row);
}

/** Type and key cannot contain NUL, so it separates them. */
function nameOf({ type, key }: Identity): string {
  return `${type}\0${key}`;
}

/**
 * By name: rows in the table, else the youngest in the archive, without those that a folding
 * collation adds (rule: exact-bytes).
 */
async function lock(
  { layout, statements }: ConfirmationParts,
  run: Run,
  identities: readonly Identity[],
): Promise<ReadonlyMap<string, Found>> {
  const found = new Map<string, Found>();
  for (const place of ["messages", "archive"] as const) {
    const left = identities.filter((identity) => !found.has(nameOf(identity)));
    if (left.length === 0) break;
    const { rows } = await run(statements.confirm.lockIdentities(left, place));
    for (const row of rows.map(lowerCased)) {
      found.set(nameOf({ type: text(row, "messagetype"), key: text(row, "messagekey") }), {
        id: text(row, "id"),
        state: decodeState(layout, row["state"]),
        deliveryCount: integer(row, "deliverycount"),
        archived: place === "archive",
      });
    }
  }
  return found;
}

/**
 * Records the confirmations and returns the missing consumers by message name, for types that name
 * their consumers. A new row version makes a transaction with an older snapshot fail.
 */
async function missingConsumers(
  { statements: { confirm } }: ConfirmationParts,
  run: Run,
  confirmations: readonly CheckedConfirmation[],
  found: ReadonlyMap<string, Found>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const wanted = new Map<string, { readonly id: string; readonly consumers: readonly string[] }>();
  const added = new Map<string, { readonly id: string; readonly consumer: string }>();
  const touched = new Set<string>();
  for (const each of confirmations) {
    const row = found.get(nameOf(each));
    if (row === undefined || row.state === "consumed" || each.consumers === undefined) continue;
    if (each.error !== undefined || each.consumer === undefined) continue;
    wanted.set(nameOf(each), { id: row.id, consumers: each.consumers });
    added.set(`${row.id}\0${each.consumer}`, { id: row.id, consumer: each.consumer });
    if (!row.archived) touched.add(row.id);
  }
  if (wanted.size === 0) return new Map();
  if (touched.size > 0) await run(confirm.touchRows([...touched]));
  await run(confirm.addConfirmations([...added.values()]));
  const there = new Set<string>();
  const { rows } = await run(confirm.readConfirmations([...new Set([...wanted.values()].map(({ id }) => id))]));
  for (const row of rows.map(lowerCased)) there.add(`${text(row, "id")}\0${text(row, "consumer")}`);
  return new Map(
    [...wanted].map(([name, { consumers, id }]) => [
      name,
      consumers.filter((consumer) => !there.has(`${id}\0${consumer}`)),
    ]),
  );
}

interface Facts {
  readonly found: ReadonlyMap<string, Found>;
  readonly missing: ReadonlyMap<string, readonly string[]>;
}

/** `consumed`, for messages that await no other consumer. */
async function consume(
  { statements: { confirm } }: ConfirmationParts,
  run: Run,
  confirmations: readonly CheckedConfirmation[],
  { found, missing }: Facts,
): Promise<void> {
  const rows = new Set<string>();
  const archived = new Map<string, Identity>();
  for (const each of confirmations) {
    const name = nameOf(each);
    const row = found.get(name);
    const isOpen = row !== undefined && row.state !== "consumed" && row.state !== "unknown";
    if (!isOpen || each.error !== undefined || (missing.get(name)?.length ?? 0) > 0) continue;
    if (row.archived) archived.set(name, { type: each.type, key: each.key });
    else rows.add(row.id);
  }
  if (archived.size > 0) await run(confirm.confirmArchived([...archived.values()]));
  if (rows.size === 0) return;
  const { affected } = await run(confirm.confirmRows([...rows]));
  if (affected === rows.size) return;
  throw new DatabaseConflictError(
    `${affected} of ${rows.size} locked messages were confirmed: another transaction was in the way`,
  );
}

/**
 * Names of messages whose failure was written: `sent`, at the given attempt, not confirmed in the
 * same call.
 */
async function reportFailures(
  { layout, statements: { confirm } }: ConfirmationParts,
  run: Run,
  confirmations: readonly CheckedConfirmation[],
  found: ReadonlyMap<string, Found>,
): Promise<ReadonlySet<string>> {
  const confirmed = new Set(confirmations.filter(({ error }) => error === undefined).map(nameOf));
  const counts = layout.columns.deliveryCount !== undefined;
  const reasons = new Map<string, { readonly id: string; readonly reason: string }>();
  for (const each of confirmations) {
    const { attempt, consumer, error } = each;
    const row = found.get(nameOf(each));
    if (error === undefined || row === undefined || row.archived || row.state !== "sent") continue;
    if (confirmed.has(nameOf(each)) || (counts && attempt !== undefined && attempt !== row.deliveryCount)) continue;
    reasons.set(nameOf(each), { id: row.id, reason: reasonOf(consumer, error, layout.failReasonLength) });
  }
  if (reasons.size > 0)
    await withReasons(run, [...reasons.values()], layout.failReasonLength, (rows) => confirm.reportFailed(rows));
  return new Set(reasons.keys());
}

/**
 * In ASCII if the database lacks a letter. A savepoint, because on PostgreSQL the refusal would end
 * the transaction.
 */
async function withReasons<Row extends { readonly reason: string | null }>(
  run: Run,
  rows: readonly Row[],
  length: number,
  write: (rows: readonly Row[]) => Statement,
): Promise<void> {
  const plain = rows.map((row) => ({ ...row, reason: row.reason && clip(inAscii(row.reason), length) }));
  const isPlain = plain.every(({ reason }, index) => reason === rows[index]?.reason);
  const savepoint = (verb: string) => run({ name: "savepoint", text: `${verb} rowpost_reasons`, params: [] });
  if (!isPlain) await savepoint("SAVEPOINT");
  try {
    await run(write(rows));
  } catch (error) {
    if (isPlain || !(error instanceof InvalidMessageError)) throw error;
    await savepoint("ROLLBACK TO SAVEPOINT");
    await run(write(plain));
  }
  if (!isPlain) await savepoint("RELEASE SAVEPOINT");
}

function reasonOf(consumer: string | undefined, error: string, length: number): string {
  const by = consumer === undefined ? "" : `${consumer}: `;
  return clip(`${NOT_CONSUMED}: ${storable(`${by}${error}`)}`, length);
}

/** In a form that every database stores. */
function storable(said: string): string {
  return said.replaceAll("\0", "").replace(/\p{Surrogate}/gu, "\u{FFFD}");
}

function resultOf(
  each: CheckedConfirmation,
  { found, missing, reported }: Facts & { readonly reported: ReadonlySet<string> },
): ConfirmationResult {
  const name = nameOf(each);
  const row = found.get(name);
  if (row === undefined || row.state === "unknown") return { status: "unknown" };
  if (each.error !== undefined) return { status: reported.has(name) ? "reported" : "outdated" };
  const waitingFor = missing.get(name) ?? [];
  return waitingFor.length > 0 ? { status: "waiting", waitingFor } : { status: "consumed" };
}
