/** A request of node:http or Express. */
export interface NodeRequest extends AsyncIterable<unknown> {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Set by an earlier body parser: `express.raw()` leaves a Buffer. */
  readonly body?: unknown;
  /** True when the body has been read. */
  readonly readableEnded?: boolean;
}

/** A response of node:http or Express. */
export interface NodeResponse {
  /** Begins the response. */
  writeHead(status: number, headers: Readonly<Record<string, string>>): { end(body: string): unknown };
  /** Breaks it off. */
  destroy(): unknown;
}

export class BodyError extends Error {
  readonly status: 413 | 500;

  constructor(status: BodyError["status"], message: string) {
    super(message);
    this.status = status;
  }
}

const PARSED =
  "the body was parsed before it came here, and the signature is over its bytes: put the listener in front of express.json(), or behind express.raw({ type: () => true })";

export async function bodyOfNode(request: NodeRequest, maxBytes: number): Promise<Uint8Array> {
  const { body } = request;
  if (body instanceof Uint8Array) return withinLimit(body, maxBytes);
  if (request.readableEnded === true) throw new BodyError(500, PARSED);
  return await gathered(request as AsyncIterable<Uint8Array>, maxBytes);
}

export function bodyOfOther(body: unknown): string | Uint8Array {
  if (body === undefined || body === null) return "";
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  throw new BodyError(500, "the body was parsed before it came here, and the signature is over its bytes; pass them");
}

export async function bodyOfFetch(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.bodyUsed) throw new BodyError(500, "the body was read before it came here; pass the request as it came");
  return request.body === null ? new Uint8Array() : await gathered(request.body, maxBytes);
}

/** Keeps at most the limit; the rest of a larger body is read and dropped. */
async function gathered(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes <= maxBytes) kept.push(chunk);
    else kept.length = 0;
  }
  if (bytes > maxBytes) throw tooLarge();
  return Buffer.concat(kept);
}

function withinLimit(body: Uint8Array, maxBytes: number): Uint8Array {
  if (body.length > maxBytes) throw tooLarge();
  return body;
}

function tooLarge(): BodyError {
  return new BodyError(413, "the body is too large");
}
