/** Sends one request. No redirect is followed, and little is read of the answer. */
import type { ChannelRequest, ChannelResponse } from "./channels/channel.ts";

const TIMEOUT_MS = 5_000;
const MOST_BYTES = 4_096;

/** Rejects with an error whose text names no address. */
export async function post({ body, headers, url }: ChannelRequest, timeoutMs = TIMEOUT_MS): Promise<ChannelResponse> {
  return await ask(url, { method: "POST", headers, body }, timeoutMs);
}

/** Tells a dead man's switch that somebody is alive. */
export async function ping(url: string, timeoutMs = TIMEOUT_MS): Promise<ChannelResponse> {
  return await ask(url, { method: "GET" }, timeoutMs);
}

async function ask(url: string, init: RequestInit, timeoutMs: number): Promise<ChannelResponse> {
  try {
    // A redirect would carry the notice, and its secret, to where nobody has sent it.
    const response = await fetch(url, { ...init, redirect: "manual", signal: AbortSignal.timeout(timeoutMs) });
    return { status: response.status, body: await beginning(response) };
  } catch (error) {
    throw new Error(reasonOf(error, timeoutMs));
  }
}

async function beginning({ body }: Response): Promise<string> {
  if (body === null) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= MOST_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MOST_BYTES).toString("utf8");
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === "TimeoutError") return `no answer within ${timeoutMs} ms`;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return code === "" ? "the connection failed" : `the connection failed: ${code}`;
}
