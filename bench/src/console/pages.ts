/** Pages that an operator uses on a big table, with time limits. */
import { performance } from "node:perf_hooks";
import { keyOf } from "../relay/messages.ts";
import type { AskedConsole } from "./asking.ts";

export interface Page {
  readonly name: string;
  /** Limit of the 99th percentile in ms. */
  readonly p99Ms: number;
  readonly look: (console: AskedConsole, rows: number) => Promise<number>;
  /** Loads in a run. Default 200. */
  readonly looks?: number;
}

const LIST_MS = 150;
/** Longer than answers are shared (shared-answer.ts), so that the next one is computed anew. */
const KEPT_MS = 2_100;

const secondsAgo = (seconds: number): string => new Date(Date.now() - seconds * 1_000).toISOString();
/** Varies, so that not the same database pages are read each time. */
const anyOf = (rows: number): number => 1 + Math.floor(Math.random() * rows);

const asked =
  (path: (rows: number) => string): Page["look"] =>
  async (console, rows) =>
    (await console.get(`/s/main/${path(rows)}`)).ms;

export const PAGES: readonly Page[] = [
  {
    name: "overview",
    p99Ms: 150,
    looks: 30,
    async look(console) {
      await new Promise((resolve) => setTimeout(resolve, KEPT_MS));
      return (await console.get("/s/main/overview")).ms;
    },
  },
  {
    name: "overview-kept",
    p99Ms: 5,
    async look(console) {
      await console.get("/s/main/overview");
      return (await console.get("/s/main/overview")).ms;
    },
  },
  {
    name: "pulse-unchanged",
    p99Ms: 3,
    async look(console) {
      // The relay's publishing may change the message; then the next one is requested.
      for (;;) {
        const { etag } = await console.get("/pulse");
        const { status, ms } = await console.get("/pulse", { "if-none-match": etag ?? "" });
        if (status === 304) return ms;
      }
    },
  },
  {
    name: "key",
    p99Ms: 50,
    look: asked((rows) => `lookup?word=${keyOf(anyOf(rows))}`),
  },
  { name: "no-such-key", p99Ms: 50, look: asked(() => `lookup?word=nobody-${Math.random()}`) },
  {
    name: "detail",
    p99Ms: 40,
    async look(console, rows) {
      const { json } = await console.get(`/s/main/lookup?word=${keyOf(anyOf(rows))}`);
      const [message] = json["items"] as readonly { readonly id: string }[];
      if (message === undefined) throw new Error("a message that was loaded is not found by its key");
      return (await console.get(`/s/main/messages/${message.id}`)).ms;
    },
  },
  { name: "newest", p99Ms: LIST_MS, look: asked(() => "messages?limit=50") },
  { name: "by-state", p99Ms: LIST_MS, look: asked(() => "messages?limit=50&state=failed") },
  { name: "by-topic", p99Ms: LIST_MS, look: asked(() => "messages?limit=50&topic=orders") },
  {
    name: "by-window",
    p99Ms: LIST_MS,
    look: asked((rows) => {
      const ago = anyOf(rows);
      const window = new URLSearchParams({ after: secondsAgo(ago), before: secondsAgo(ago - 3_600) });
      return `messages?limit=50&${window.toString()}`;
    }),
  },
  { name: "failures", p99Ms: 2_500, looks: 30, look: asked(() => "failures") },
  {
    name: "by-reason",
    p99Ms: 2_500,
    looks: 30,
    look: asked(() => "messages?limit=50&reason=no%20such%20text"),
  },
];

export async function looksAt(page: Page, console: AskedConsole, rows: number, quick: boolean): Promise<number[]> {
  const times: number[] = [];
  const looks = quick ? 3 : (page.looks ?? 200);
  for (let count = 0; count < looks; count += 1) times.push(await page.look(console, rows));
  return times;
}

/** Simulates browsers that have a page open, with their requests of a minute. */
export async function watch(console: AskedConsole, viewers: number, ended: AbortSignal): Promise<void> {
  const viewer = async (number: number): Promise<void> => {
    for (let round = 0; !ended.aborted; round += 1) {
      await console.get("/pulse");
      if (round % 3 === 0) await console.get("/s/main/overview");
      if (round % 5 === number % 5) await console.get("/s/main/messages?limit=50");
      const began = performance.now();
      while (!ended.aborted && performance.now() - began < 2_000) await new Promise((done) => setTimeout(done, 100));
    }
  };
  await Promise.all(Array.from({ length: viewers }, (_, number) => viewer(number)));
}
