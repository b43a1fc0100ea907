import type { Explanation, MessageAdmin, MessageFilter, MessageSummary } from "rowpost/admin";
import type { z } from "zod";
import { onlyTopic, reaches, type Topics } from "../../access/topics.ts";
import type { Source } from "../../source.ts";
import type { ConsoleParts, HandlersOf } from "../call.ts";
import { decodeCursor, encodeCursor, type Position } from "../cursor.ts";
import { versionTag } from "../etag.ts";
import { Problem } from "../problem.ts";
import { messageId, type messageList, type messageQuery } from "../schemas.ts";

type List = z.infer<typeof messageList>;
type Place = Position["place"];

interface Search {
  readonly filter: MessageFilter;
  readonly topics: Topics;
  readonly places: readonly Place[];
  readonly limit: number;
  readonly budgetMs: number;
  readonly from?: Position | undefined;
}

/** Longer bodies are cut; the download has all. */
const SHOWN_LENGTH = 262_144;
const PASSED_OVER = 200;
const LOOKUP = { places: ["live", "archive"], limit: 50, budgetMs: 2_000 } as const;
const UNFINISHED = ["pending", "sending", "failed", "suspended"] as const;

export function messageHandlers({
  metrics,
}: Pick<ConsoleParts, "metrics">): HandlersOf<"messages" | "lookup" | "message" | "keyQueue" | "body" | "rawBody"> {
  function listed(found: Found, about: unknown): List {
    const list = listOf(found, about);
    metrics.increment("rowpost_searches_total", { stopped: list.searched.stopped });
    return list;
  }

  return {
    async messages({ principal: { topics }, query, source }) {
      const { budgetMs, cursor, in: places, limit } = query;
      const filter = filterOf(query);
      const about = { filter, places, source: source.name };
      const from = cursor === undefined ? undefined : decodeCursor(cursor, about);
      const page = await source.search((admin) => find(admin, { filter, topics, places, limit, budgetMs, from }));
      return { json: listed(page, about) };
    },

    async lookup({ principal: { topics }, query: { key, type, word }, source }) {
      if (key === undefined && word === undefined)
        throw new Problem("invalid-request", "give key (with type if you know it), or word", {
          more: { errors: [{ pointer: "/key", message: "is missing" }] },
        });
      const isId = word !== undefined && messageId.safeParse(word).success;
      const byId = isId ? (await find(source.reads, { ...LOOKUP, topics, filter: { ids: [word] } })).messages : [];
      const filter = { key: key ?? word ?? "", ...(type === undefined ? {} : { type }) };
      const byKey = await source.search((admin) => find(admin, { ...LOOKUP, topics, filter }));
      // A number may be the id of one message and the key of another.
      const others = byKey.messages.filter(({ id }) => byId.every((message) => message.id !== id));
      return { json: listed({ ...byKey, messages: [...byId, ...others] }, undefined) };
    },

    async message({ id, principal: { topics }, source }) {
      const message = await summaryOf(source, id);
      const explanation = await toldTo(topics, source, await source.reads.explain(message));
      const changes = await source.reads.changes(id);
      const json = { message: { ...message }, explanation, changes, asOf: new Date().toISOString() };
      return { json, headers: { etag: versionTag(message) } };
    },

    async keyQueue({ id, principal: { topics }, source }) {
      const { orderingKey } = await summaryOf(source, id);
      if (typeof orderingKey !== "string") return { json: listOf(NOTHING, undefined) };
      const filter = { orderingKey, states: UNFINISHED };
      const search = { filter, topics, places: ["live"] as const, limit: 50, budgetMs: 2_000 };
      return { json: listed(await source.search((admin) => find(admin, search)), undefined) };
    },

    async body({ id, principal, source }) {
      const { body, contentType, headers } = await stored(source, id, principal);
      // Does not cut a surrogate pair.
      const shown = body.slice(0, SHOWN_LENGTH).replace(/[\ud800-\udbff]$/, "");
      const cut = { truncated: shown.length < body.length, length: body.length };
      return { json: { body: shown, ...cut, contentType, headers } };
    },

    async rawBody({ id, principal, source }) {
      const { body, contentType } = await stored(source, id, principal);
      const bytes = contentType?.endsWith(";base64") === true ? Buffer.from(body, "base64") : Buffer.from(body);
      // Never displayed by the browser, whatever its content.
      return new Response(bytes, {
        headers: {
          "content-type": "application/octet-stream",
          "content-disposition": `attachment; filename="message-${id}.bin"`,
        },
      });
    },
  };
}

/** The blocking message may have another topic; its state and reason are then hidden. */
async function toldTo(topics: Topics, source: Source, explanation: Explanation): Promise<Explanation> {
  const { behindId, heldBy, since } = explanation;
  if (topics === undefined || behindId === undefined) return explanation;
  const front = (await find(source.reads, { ...LOOKUP, topics, filter: { ids: [behindId] } })).messages;
  if (front.length > 0) return explanation;
  return { heldBy, text: "it waits behind a message of another topic", ...(since === undefined ? {} : { since }) };
}

/** A page of one search over the table and its archive. */
interface Found {
  readonly messages: readonly MessageSummary[];
  readonly next: Position | undefined;
  readonly timeIsUp: boolean;
  readonly places: readonly Place[];
  readonly isWhole: boolean;
}

const NOTHING: Found = { messages: [], next: undefined, timeIsUp: false, places: ["live"], isWhole: true };

/** The message, from the archive too. Throws a {@link Problem} when there is none. */
export async function summaryOf({ reads }: Pick<Source, "reads">, id: string): Promise<MessageSummary> {
  const [message] = (await find(reads, { ...LOOKUP, topics: undefined, limit: 1, filter: { ids: [id] } })).messages;
  if (message === undefined) throw new Problem("not-found", `there is no message ${id}, in the table or its archive`);
  return message;
}

async function find(admin: MessageAdmin, { budgetMs, from, limit, places, topics, ...search }: Search): Promise<Found> {
  const { topic: wanted = onlyTopic(topics), ...others } = search.filter;
  if (wanted !== undefined && !reaches(topics, wanted)) return { ...NOTHING, places };
  const filter: MessageFilter = { ...others, ...(wanted === undefined ? {} : { topic: wanted }) };
  const untilMs = performance.now() + budgetMs;
  const messages: MessageSummary[] = [];
  const looked: Place[] = [];
  const isWhole = from === undefined;
  let position: Position | undefined = from ?? { place: places[0] ?? "live", beforeId: undefined };
  for (;;) {
    const place: Place = position.place;
    if (!looked.includes(place)) looked.push(place);
    const left = limit - messages.length;
    const archived: boolean = place === "archive";
    const page = await admin.list({
      // Many hidden rows may have to be skipped.
      filter,
      limit: topics === undefined || archived ? left : Math.max(left, PASSED_OVER),
      archived,
      beforeId: position.beforeId,
      timeLimitMs: Math.max(1, untilMs - performance.now()),
    });
    const visible = page.messages.filter(({ topic }) => reaches(topics, topic));
    messages.push(...(archived ? visible : visible.slice(0, left)));
    const nextBeforeId: string | undefined =
      !archived && visible.length > left ? messages.at(-1)?.id : page.nextBeforeId;
    const found = { messages, places: looked, isWhole };
    const timeIsUp = page.timeIsUp || performance.now() >= untilMs;
    if (nextBeforeId !== undefined) {
      position = { place, beforeId: nextBeforeId };
      // Hidden rows do not fill a page.
      if (messages.length < limit && !timeIsUp) continue;
      return { ...found, next: position, timeIsUp };
    }
    const following: Place | undefined = places[places.indexOf(place) + 1];
    position = following && { place: following, beforeId: undefined };
    if (position === undefined) return { ...found, next: undefined, timeIsUp: false };
    if (messages.length >= limit) return { ...found, next: position, timeIsUp: false };
    if (timeIsUp) return { ...found, next: position, timeIsUp };
  }
}

/** `about` undefined: a list without further pages. */
function listOf({ isWhole, messages, next, places, timeIsUp }: Found, about: unknown): List {
  const complete = next === undefined;
  return {
    items: [...messages],
    next: complete || about === undefined ? null : encodeCursor(next, about),
    searched: {
      complete,
      stopped: complete ? "end" : timeIsUp ? "budget" : "limit",
      places: [...places],
      downToId: next?.beforeId,
    },
    total: { value: messages.length, relation: complete && isWhole ? "eq" : "gte" },
    asOf: new Date().toISOString(),
  };
}

function filterOf(query: z.output<typeof messageQuery>): MessageFilter {
  const given: { readonly [Name in keyof MessageFilter]: MessageFilter[Name] | undefined } = {
    type: query.type,
    key: query.key,
    keyPrefix: query.keyPrefix,
    topic: query.topic,
    orderingKey: query.orderingKey,
    states: query.state,
    failReasonContains: query.reason,
    createdAfter: query.after,
    createdBefore: query.before,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

async function stored(source: Source, id: string, { name, via }: { readonly name: string; readonly via: string }) {
  const message = await source.search((admin) => admin.show({ id }));
  if (message === undefined) throw new Problem("not-found", `there is no message ${id}, in the table or its archive`);
  await source.operations.record({
    author: name,
    via,
    action: "body",
    reason: "looked at",
    result: "done",
    details: { id },
  });
  return message;
}
