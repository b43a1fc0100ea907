/** One request and its answer. On an error, whether the request was handed over. */
import type { ClientRequest, IncomingMessage, Agent as PlainAgent } from "node:http";
import { request as plainRequest } from "node:http";
import type { Agent as SecureAgent } from "node:https";
import { request as secureRequest } from "node:https";
import type { Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import type { HttpAnswer } from "./response.ts";
import type { Target } from "./target.ts";

export interface Agents {
  readonly plain: PlainAgent;
  readonly secure: SecureAgent;
}

export interface ExchangeRequest {
  readonly target: Target;
  readonly method: "POST" | "HEAD";
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Uint8Array | undefined;
  readonly timeoutMs: number;
}

export type Exchange =
  | { readonly answered: true; readonly answer: HttpAnswer }
  | {
      readonly answered: false;
      /** False: no byte was given to a connection. True: the request may have arrived. */
      readonly handedOver: boolean;
      readonly code: string;
      readonly reason: string;
    };

export interface RunningExchange {
  readonly done: Promise<Exchange>;
  abort(code: string, reason: string): void;
}

/** Bytes of an answer's body that are kept for the receipt and the reason. */
const KEPT_BODY_BYTES = 16_384;
/** A longer body is not read to its end; the connection is dropped. */
const READ_BODY_BYTES = 1_048_576;

/**
 * Starts a request. It always ends: with an answer, an error, after `timeoutMs`, or by `abort`.
 *
 * A request counts as handed over once it is given to an established connection (with TLS, after
 * the handshake, which proves the server's identity). Before that nothing can have arrived. After
 * it everything may have, whatever the error says.
 */
export function startExchange(request: ExchangeRequest, agents: Agents, clock: Clock): RunningExchange {
  const { target, method, headers, body, timeoutMs } = request;
  const { secure, hostname, port, path } = target;
  const options = { hostname, port, path, method, headers: { ...headers } };
  const outgoing = secure
    ? secureRequest({ ...options, agent: agents.secure })
    : plainRequest({ ...options, agent: agents.plain });
  let handedOver = false;
  let brokenBy: { readonly code: string; readonly reason: string } | undefined;
  let incoming: ReceivedBody | undefined;
  watchHandOver(outgoing, secure, () => {
    handedOver = true;
  });

  function abort(code: string, reason: string): void {
    if (brokenBy !== undefined) return;
    brokenBy = { code, reason };
    outgoing.destroy();
  }

  const done = new Promise<Exchange>((resolve) => {
    const timer = clock.setTimer(() => {
      if (handedOver) abort("TIMEOUT", `no answer from ${target.label} within ${timeoutMs} ms`);
      else abort("CONNECT_TIMEOUT", `no connection to ${target.label} within ${timeoutMs} ms`);
    }, timeoutMs);

    function finish(error: Error | undefined): void {
      timer.cancel();
      // A status line that has arrived stands, even if the body then breaks off.
      if (incoming !== undefined) resolve({ answered: true, answer: incoming.answer() });
      else resolve({ answered: false, handedOver, ...(brokenBy ?? textsOf(error, target.label)) });
    }

    outgoing.on("response", (message) => {
      incoming = receiveBody(message, () => finish(undefined));
    });
    outgoing.on("error", finish);
    outgoing.on("close", () => finish(undefined));
  });
  outgoing.end(body);
  return { done, abort };
}

function watchHandOver(outgoing: ClientRequest, secure: boolean, run: () => void): void {
  outgoing.on("socket", (socket: Socket) => {
    if (outgoing.reusedSocket || (!secure && !socket.connecting)) run();
    else socket.once(secure ? "secureConnect" : "connect", run);
  });
}

interface ReceivedBody {
  answer(): HttpAnswer;
}

/** Keeps the beginning of the body and reads the rest so that the connection can be reused. */
function receiveBody(message: IncomingMessage, onEnd: () => void): ReceivedBody {
  const chunks: Buffer[] = [];
  let length = 0;
  message.on("data", (chunk: Buffer) => {
    if (length < KEPT_BODY_BYTES) chunks.push(chunk);
    length += chunk.length;
    if (length > READ_BODY_BYTES) message.destroy();
  });
  message.on("end", onEnd);
  message.on("error", onEnd);
  message.on("close", onEnd);
  return {
    answer: () => ({
      status: message.statusCode ?? 0,
      statusText: message.statusMessage ?? "",
      headers: message.headers,
      body: Buffer.concat(chunks).subarray(0, KEPT_BODY_BYTES),
    }),
  };
}

function textsOf(error: Error | undefined, label: string): { readonly code: string; readonly reason: string } {
  if (error === undefined) return { code: "ECONNRESET", reason: `${label}: the connection ended without an answer` };
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  // For a host with several addresses, Node reports one error each and an empty message.
  const causes: unknown[] = error instanceof AggregateError ? error.errors : [error];
  const messages = causes.map((cause) => (cause instanceof Error ? cause.message : String(cause)));
  return { code, reason: `${label}: ${messages.join("; ")}` };
}
