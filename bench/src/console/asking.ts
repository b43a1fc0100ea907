/** A console in this process with browser-like requests, timed to the last byte of the answer. */
import { performance } from "node:perf_hooks";
import { createConsole } from "rowpost-server/console";
import { openRowpost } from "../rowpost.ts";

export interface Answer {
  readonly status: number;
  readonly etag: string | null;
  readonly json: Readonly<Record<string, unknown>>;
  readonly ms: number;
}

export interface AskedConsole {
  /** `path` from `/api/v1`. Throws for status 400 and above. */
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  post(path: string, body: object): Promise<Answer>;
  close(): Promise<void>;
}

const ORIGIN = "http://console.bench";

export async function openConsole(url: string): Promise<AskedConsole> {
  const { database, close } = await openRowpost(url);
  const made = createConsole({
    sources: [{ name: "main", database }],
    authorize: () => ({ name: "bench", role: "admin" }),
    requestsPerSecond: 100_000,
  });
  const ask = async (path: string, init: RequestInit): Promise<Answer> => {
    const began = performance.now();
    const response = await made.fetch(new Request(`${ORIGIN}/api/v1${path}`, init));
    const text = await response.text();
    const ms = performance.now() - began;
    if (response.status >= 400) throw new Error(`${path} answered ${response.status}: ${text}`);
    const json = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
    return { status: response.status, etag: response.headers.get("etag"), json, ms };
  };
  return {
    get: (path, headers = {}) => ask(path, { headers }),
    post: (path, body) =>
      ask(path, {
        method: "POST",
        headers: { "content-type": "application/json", "sec-fetch-site": "same-origin" },
        body: JSON.stringify(body),
      }),
    async close() {
      await made.close();
      await close();
    },
  };
}
