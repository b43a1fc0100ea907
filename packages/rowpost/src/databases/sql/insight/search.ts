/**
 * Looking for messages without reading the whole table. A filter goes along an index where one
 * leads to it; else along the primary key, in steps, until the page is full or the time is over.
 * First the ids are found, then the rows of these ids are read: so a search carries no bodies.
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
 * Rows of a step along the primary key: the first is small, because most pages are full soon. A
 * step of 20,000 takes 8 to 41 ms (MariaDB 10.11 and PostgreSQL 15, 2,000,000 rows of 700 bytes).
 */
const FIRST_STEP = 2_000;
const LONGEST_STEP = 20_000;
/**
 * Rows of states that are sorted when the first step along the primary key has not filled the page.
 * Behind 130,000 newer messages a page of 25,000 failed ones among 10,000,000 takes 19 ms (MariaDB
 * 10.11); the steps took 500 behind 300,000. PostgreSQL finds them in the order of ids.
 */
const SORTED_ROWS = 50_000;
/** With more types than this, a key without its type is looked for along the primary key. */
const MOST_TYPES = 100;
/** Rows of the archive with one id: one for each time that ids began again. */
const MOST_OF_AN_ID = 10_000;

export interface SearchRequest {
  readonly filter: MessageFilter;
  readonly limit: number;
  readonly newestFirst: boolean;
  /** Only messages behind this one, in the direction of the search. */
  readonly behindId?: string | undefined;
  /** Only messages up to this one, in the order of ids. */
  readonly upToId?: string | undefined;
  readonly archived: boolean;
  readonly timeLimitMs: number;
}

/** Which row: an id may come again in the archive, after a TRUNCATE of the message table. */
export interface MessagePlace {
  readonly id: string;
  /** As the database writes it; only of the archive. */
  readonly archivedAt?: string | undefined;
}

export interface FoundMessage extends SeenMessage, MessagePlace {}

export interface SearchResult {
  readonly found: readonly FoundMessage[];
  /** The last id that was looked at; undefined: there are no others. */
  readonly next: string | undefined;
  readonly timeIsUp: boolean;
}

export interface MessageSearch {
  /** Of the archive all rows of the last id, even where they are more than `limit`. */
  search(request: SearchRequest): Promise<SearchResult>;
  /** One step of a search, which the caller has bounded; it ends in the same way. */
  find(request: FindRequest): Promise<FoundMessage[]>;
  /** What was found, in this order; those that are gone are left out. */
  summaries(found: readonly MessagePlace[], archived: boolean): Promise<MessageSummary[]>;
  /** The same with their bodies. */
  messages(found: readonly MessagePlace[], archived: boolean): Promise<StoredMessage[]>;
}

/** A way to the rows of a match. */
interface Way {
  readonly along: FindRequest["along"];
  readonly match: MessageMatch;
}

type Finding = Omit<FindRequest, "limit" | "lowId" | "highId">;

/** What messages are looked for with. */
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
    // Of states alone, a first step along the primary key is tried before they are counted.
    const isRare = states !== undefined && !archived && !isOfStates(match) && (await areRare(states));
    return { along: isRare ? "states" : "ids", match };
  }

  /**
   * Unfinished messages of one ordering key, however many others wait: only the default table is
   * known to have the index.
   */
  function isOpenKey({ orderingKey, states }: MessageFilter): boolean {
    const isOpen = states?.every((state) => state !== "sent" && state !== "consumed") === true;
    return layout.name === "default" && orderingKey !== undefined && isOpen;
  }

  /** A key has one message of each type; a short beginning may have half of the table. */
  async function areFew(types: readonly string[], { key, keyPrefix }: MessageFilter, archived: boolean) {
    if (types.length === 0 || key !== undefined || keyPrefix === undefined) return true;
    const limit = Math.ceil(COUNTED_ROWS / types.length);
    const [row] = await read(countKeys(table, { types, keyPrefix, archived, limit }));
    return row !== undefined && integer(row, "count") < limit;
  }

  /** One more than {@link MOST_TYPES} at most. */
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

  /** Rows of other times would have to be read, however well an index has them sorted. */
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
    // The next page begins behind the last id: the other rows of this id come on this page.
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

  /** In steps along the primary key. */
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

/** Nothing but states and times is asked for: the index on the state is all that is read. */
function isOfStates({ createdAfter: _after, createdBefore: _before, states, ...others }: MessageMatch): boolean {
  return states !== undefined && Object.values(others).every((each) => each === undefined);
}

function placeOf({ archivedAt = "", id }: MessagePlace): string {
  return `${id} ${archivedAt}`;
}

/** What is left of a range behind an id, in the direction of the search. */
function behind(range: IdRange, id: string, newestFirst: boolean): IdRange {
  return newestFirst ? { ...range, highId: String(BigInt(id) - 1n) } : { ...range, lowId: String(BigInt(id) + 1n) };
}

/** Ids of both ranges; undefined: there are none. */
function both(left: IdRange, right: IdRange | undefined): IdRange | undefined {
  if (right === undefined) return undefined;
  const low = [left.lowId, right.lowId].filter((id) => id !== undefined).map(BigInt);
  const high = [left.highId, right.highId].filter((id) => id !== undefined).map(BigInt);
  const lowId = low.length === 0 ? undefined : low.reduce((most, id) => (id > most ? id : most));
  const highId = high.length === 0 ? undefined : high.reduce((least, id) => (id < least ? id : least));
  if (lowId !== undefined && highId !== undefined && lowId > highId) return undefined;
  return { lowId: lowId?.toString(), highId: highId?.toString() };
}

/** Throws `ConfigurationError` for ids and times that no message can have. */
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
