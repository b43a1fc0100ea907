/** Problems and counts, from one snapshot that the viewers share. */
import { createHash } from "node:crypto";
import { RowpostError } from "rowpost";
import type { z } from "zod";
import type { Topics } from "../../access/topics.ts";
import type { Snapshot, Source } from "../../source.ts";
import type { ConsoleParts, HandlersOf } from "../call.ts";
import { narrowedStatus } from "../narrowed-status.ts";
import type { pulse } from "../schemas.ts";
import { countsOf, problemsOf, relaysOf, topicsOf, unownedShards } from "../status-view.ts";

type PulseOf = z.infer<typeof pulse>["sources"][number];

export function overviewHandlers({ sources }: ConsoleParts): HandlersOf<"pulse" | "overview" | "topics" | "relays"> {
  return {
    async pulse({ principal: { topics }, request }) {
      const json = { sources: await Promise.all(sources.map((source) => pulseOf(source, topics))) };
      const etag = `"${createHash("sha256").update(JSON.stringify(json)).digest("base64url").slice(0, 22)}"`;
      const headers = { etag, "cache-control": "no-cache" };
      const isSame = request.headers.get("if-none-match")?.replace(/^W\//, "") === etag;
      return isSame ? new Response(null, { status: 304, headers }) : { json, headers };
    },

    async overview({ principal: { topics }, source }) {
      const { asOf, estimate, status } = await seen(source, topics);
      const { instances, oldestDue, suspensions } = status;
      return {
        json: {
          problems: problemsOf(status),
          states: countsOf(status),
          ...(estimate.messages === undefined || topics !== undefined
            ? {}
            : { messages: { value: estimate.messages, relation: "est" as const } }),
          oldestDue,
          topics: topicsOf(status),
          relays: { alive: instances.filter(({ alive }) => alive).length, known: instances.length },
          suspensions: [...suspensions],
          asOf,
        },
      };
    },

    async topics({ principal: { topics }, source }) {
      const { asOf, status } = await seen(source, topics);
      return { json: { items: topicsOf(status), asOf } };
    },

    async relays({ principal: { topics }, source }) {
      const { asOf, status } = await seen(source, topics);
      const shards = { total: status.leases.length, unowned: unownedShards(status) };
      return { json: { items: relaysOf(status), shards, asOf } };
    },
  };
}

async function seen({ snapshot }: Pick<Source, "snapshot">, topics: Topics): Promise<Snapshot> {
  const found = await snapshot();
  return { ...found, status: narrowedStatus(found.status, topics) };
}

async function pulseOf({ name, snapshot }: Source, topics: Topics): Promise<PulseOf> {
  try {
    const { firing, status } = await seen({ snapshot }, topics);
    // Rounded, or every answer would differ.
    const oldestWaitingMs = status.oldestDue && Math.floor(status.oldestDue.waitingMs / 1_000) * 1_000;
    return {
      name,
      states: countsOf(status),
      problems: problemsOf(status).length,
      oldestWaitingMs,
      ...(firing === undefined || topics !== undefined ? {} : { alerts: firing }),
    };
  } catch (error) {
    if (!(error instanceof RowpostError)) throw error;
    return { name, states: [], problems: 1, away: error.retriable ? "database-away" : "database-unfit" };
  }
}
