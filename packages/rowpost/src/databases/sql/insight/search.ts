/**
 * Searches messages without reading the whole table: by an index where one fits, else along the
 * primary key in steps until the page is full or the time is over. Finds ids first and then reads
 * their rows, so it carries no bodies.
 */

import type { MessageFilter, MessageSummary, SeenMessage, StoredMessage } from "../../../admin/message-admin.ts";
import type { MessageState } from "../../../message/states.ts";
import { ConfigurationError } from "../../../runtime/errors.ts";
import type { MessageTable } from "../cold-table.ts";
import { integer, messageSummary, type Row, storedMessage, text, textOrNull, wholeText } from "../rows.ts";
import { countKeys, find as findMessages } from "./find.ts";
import { createIdsByTime } from "./ids-by-time.ts";
import { COUNTED_ROWS, type FindRequest, type IdRange, type MessageMatch, type Read } from "./requests.ts";
import { chunkEnd, countStates, nextType, readMessages } from "./statements.ts";

/**
 * Rows of a step along the primary key; the first is small, because most pages fill soon. 20,000
 * take 8 to 41 ms (MariaDB 10.11 and PostgreSQL 15, 2,000,000 rows of 700 bytes).
 */
const FIRST_STEP = 2_000;
const LONGEST_STEP = 20_000;
/**
 * Rows of states sorted if the first step has not filled the page. Behind 130,000 newer messages a
 * page of 25,000 failed ones among 10,000,000 takes 19 ms (MariaDB 10.11); the steps took 500
 * behind 300,000. PostgreSQL finds them in id order.
 */
const SORTED_ROWS = 50_000;
/** With more types, a key without its type is searched along the primary key. */
const MOST_TYPES = 100;
/** Archive rows with one id: one for each restart of the ids. */
const MOST_OF_AN_ID = 10_000;

export interface SearchRequest {
  readonly filter: MessageFilter;
  readonly limit: number;
  readonly newestFirst: boolean;
  /** Only messages after this one, in search direction. */
  readonly behindId?: string | undefined;
  /** Only messages up to this one, in id order. */
  readonly upToId?: string | undefined;
  readonly archived: boolean;
  readonly timeLimitMs: number;
}

/** Identifies a row: an id may recur in the archive after a TRUNCATE of the message table. */
export interface MessagePlace {
  readonly id: string;
  /** As the database writes it; archive only. */
  readonly archivedAt?: string | undefined;
}

export interface FoundMessage extends SeenMessage, MessagePlace {}

export interface SearchResult {
  readonly found: readonly FoundMessage[];
  /** The last id examined; undefined: the search is complete. */
  readonly next: string | undefined;
  readonly timeIsUp: boolean;
}

export interface MessageSearch {
  /** For the archive returns all rows of the last id, even beyond `limit`. */
  search(request: SearchRequest): Promise<SearchResult>;
  /** One step of a search, bounded by the caller; ends in the same way. */
  find(request: FindRequest): Promise<FoundMessage[]>;
  /** The found messages in this order, without those that are gone. */
  summaries(found: readonly MessagePlace[], archived: boolean): Promise<MessageSummary[]>;
  /** The same with bodies. */
  messages(found: readonly MessagePlace[], archived: boolean): Promise<StoredMessage[]>;
}

interface Way {
  readonly along: FindRequest["along"];
  readonly match: MessageMatch;
}

type Finding = Omit<FindRequest, "limit" | "lowId" | "highId">;

export interface SearchParts {
  readonly table: MessageTable;
  readonly read: Read;
}

export function createMessageSearch(parts: SearchParts): MessageSearch {
  const { read, table } = parts;
  const { layout } = table;
  const idsByTime = createIdsByTime(parts);

  async function wayOf({ type, ...filter }: MessageFilter, archived: boolean): Promise<Way> {
    const { states } = filter;
    const once = states === undefined ? {} : { states: [...new Set(states)] };
    const match: MessageMatch = { ...filter, ...once, types: type === undefined ? undefined : [type] };
    if (filter.ids !== undefined) return { along: "names", match };
    if (filter.key !== undefined || filter.keyPrefix !== undefined) {
      const types = match.types ?? (await allTypes(archived));
      const isFew = types.length <= MOST_TYPES && (await areFew(types, filter, archived));
      return isFew ? { along: "names", match: { ...match, types } } : { along: "ids", match };
    }
    if (!archived && isOpenKey(filter)) return { along: "keys", match };
    // For states alone, tries a first step along the primary key before counting.
    const isRare = states !== undefined && !archived && !isOfStates(match) && (await areRare(states));
    return { along: isRare ? "states" : "ids", match };
  }

  /**
   * Unfinished messages of one ordering key, however many others wait. Only the default table
   * surely has the index.
   */
  function isOpenKey({ orderingKey, states }: MessageFilter): boolean {
    const isOpen = states?.every((state) => state !== "sent" && state !== "consumed") === true;
    return layout.name === "default" && orderingKey !== undefined && isOpen;
  }

  /** A key has one message per type; a short prefix may match half the table. */
  async function areFew(types: readonly string[], { key, keyPrefix }: MessageFilter, archived: boolean) {
    if (types.length === 0 || key !== undefined || keyPrefix === undefined) return true;
    const limit = Math.ceil(COUNTED_ROWS / types.length);
    const [row] = await read(countKeys(table, { types, keyPrefix, archived, limit }));
    return row !== undefined && integer(row, "count") < limit;
  }

  /** At most one more than {@link MOST_TYPES}. */
  async function allTypes(archived: boolean): Promise<string[]> {
    const types: string[] = [];
    for (let after = ""; types.length <= MOST_TYPES; types.push(after)) {
      const [row] = await read(nextType(table, { archived, after }));
      const next = row === undefined ? null : textOrNull(row, "message_type");
      if (next === null) break;
      after = next;
    }
    return types;
  }

  async function areRare(states: readonly MessageState[], limit = COUNTED_ROWS, toSort = false): Promise<boolean> {
    const rows = await read(countStates(table, { states, limit, toSort }));
    return rows.reduce((total, row) => total + integer(row, "count"), 0) < limit;
  }

  /** Rows of other times would have to be read, even with a sorted index. */
  function maySort({ archived, match }: Finding): Promise<boolean> | false {
    const { createdAfter, createdBefore, states } = match;
    if (archived || states === undefined || !isOfStates(match)) return false;
    return areRare(states, SORTED_ROWS, createdAfter === undefined && createdBefore === undefined);
  }

  async function findRows(request: FindRequest): Promise<FoundMessage[]> {
    return (await read(findMessages(table, request))).map((row) => ({
      id: text(row, "id"),
      lockVersion: wholeText(row, "lock_version"),
      archivedAt: request.archived ? text(row, "archived_at") : undefined,
    }));
  }

  async function find(request: FindRequest): Promise<FoundMessage[]> {
    const found = await findRows(request);
    const last = found.at(-1);
    if (!request.archived || last === undefined || found.length < request.limit) return found;
    // The next page starts after the last id, so this page includes all its rows.
    const known = new Set(found.map(placeOf));
    const same = await findRows({ ...request, lowId: last.id, highId: last.id, limit: MOST_OF_AN_ID });
    return [...found, ...same.filter((row) => !known.has(placeOf(row)))];
  }

  async function rowsOf<Message extends MessageSummary>(
    found: readonly MessagePlace[],
    request: Omit<Parameters<typeof readMessages>[1], "ids">,
    decode: (row: Row) => Message,
  ): Promise<Message[]> {
    const ids = [...new Set(found.map(({ id }) => id))];
    if (ids.length === 0) return [];
    const messages = new Map<string, Message>();
    for (const row of await read(readMessages(table, { ...request, ids }))) {
      const archivedAt = request.archived ? text(row, "archived_at") : undefined;
      messages.set(placeOf({ id: text(row, "id"), archivedAt }), decode(row));
    }
    return found.flatMap((place) => messages.get(placeOf(place)) ?? []);
  }

  async function walk(finding: Finding, range: IdRange, { limit, timeLimitMs }: SearchRequest): Promise<SearchResult> {
    const { archived, newestFirst } = finding;
    const untilMs = performance.now() + timeLimitMs;
    const found: FoundMessage[] = [];
    let left = range;
    for (let rows = FIRST_STEP; ; rows = LONGEST_STEP) {
      const [row] = await read(chunkEnd(table, { ...left, archived, newestFirst, rows }));
      const end = row === undefined ? undefined : text(row, "id");
      const step = end === undefined ? left : { ...left, ...(newestFirst ? { lowId: end } : { highId: end }) };
      found.push(...(await find({ ...finding, ...step, limit: limit - found.length })));
      if (found.length >= limit) return { found, next: found.at(-1)?.id, timeIsUp: false };
      if (end === undefined) return { found, next: undefined, timeIsUp: false };
      if (performance.now() >= untilMs) return { found, next: end, timeIsUp: true };
      left = behind(left, end, newestFirst);
      if (rows === FIRST_STEP && (await maySort(finding))) {
        const others = await find({ ...finding, ...left, along: "states", limit: limit - found.length });
        const next = others.length < limit - found.length ? undefined : others.at(-1)?.id;
        return { found: [...found, ...others], next, timeIsUp: false };
      }
    }
  }

  return {
    async search(request) {
      const { archived, behindId, filter, limit, newestFirst, upToId } = request;
      const nothing: SearchResult = { found: [], next: undefined, timeIsUp: false };
      if (filter.ids?.length === 0 || filter.states?.length === 0) return nothing;
      if (filter.orderingKey !== undefined && layout.columns.orderingKey === undefined) return nothing;
      const { along, match } = await wayOf(filter, archived);
      if (match.types?.length === 0) return nothing;
      let range: IdRange | undefined = behindId === undefined ? {} : behind({}, behindId, newestFirst);
      if (upToId !== undefined) range = both(range, { highId: upToId });
      if (range === undefined) return nothing;
      if (along !== "names") range = both(range, await idsByTime(filter, archived));
      if (range === undefined) return nothing;
      const finding: Finding = { match, along, archived, newestFirst };
      if (along === "ids") return await walk(finding, range, request);
      const found = await find({ ...finding, ...range, limit });
      return { found, next: found.length < limit ? undefined : found.at(-1)?.id, timeIsUp: false };
    },

    find,
    summaries: (found, archived) =>
      rowsOf(found, { archived, bodies: false }, (row) => messageSummary(layout, row, archived)),
    messages: (found, archived) =>
      rowsOf(found, { archived, bodies: true }, (row) => storedMessage(layout, row, archived)),
  };
}

/** The filter has only states and times, so the state index is enough. */
function isOfStates({ createdAfter: _after, createdBefore: _before, states, ...others }: MessageMatch): boolean {
  return states !== undefined && Object.values(others).every((each) => each === undefined);
}

function placeOf({ archivedAt = "", id }: MessagePlace): string {
  return `${id} ${archivedAt}`;
}

/** The rest of a range after an id, in search direction. */
function behind(range: IdRange, id: string, newestFirst: boolean): IdRange {
  return newestFirst ? { ...range, highId: String(BigInt(id) - 1n) } : { ...range, lowId: String(BigInt(id) + 1n) };
}

/** Intersection; undefined if empty. */
function both(left: IdRange, right: IdRange | undefined): IdRange | undefined {
  if (right === undefined) return undefined;
  const low = [left.lowId, right.lowId].filter((id) => id !== undefined).map(BigInt);
  const high = [left.highId, right.highId].filter((id) => id !== undefined).map(BigInt);
  const lowId = low.length === 0 ? undefined : low.reduce((most, id) => (id > most ? id : most));
  const highId = high.length === 0 ? undefined : high.reduce((least, id) => (id < least ? id : least));
  if (lowId !== undefined && highId !== undefined && lowId > highId) return undefined;
  return { lowId: lowId?.toString(), highId: highId?.toString() };
}

/** Throws `ConfigurationError` for impossible ids and times. */
export function checkFilter(filter: MessageFilter): void {
  for (const id of filter.ids ?? []) {
    if (!/^\d{1,19}$/.test(id))
      throw new ConfigurationError(`${JSON.stringify(id)} is not an id: a decimal number of up to 19 digits`);
  }
  for (const name of ["createdAfter", "createdBefore"] as const) {
    const value = filter[name];
    if (
      value !== undefined &&
      (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:?\d\d)$/.test(value) || Number.isNaN(Date.parse(value)))
    ) {
      throw new ConfigurationError(
        `${name} is ${JSON.stringify(value)}; it has to be an ISO 8601 text with a zone, such as 2026-01-31T08:00:00Z`,
      );
    }
  }
}
