/**
 * The few requests of RocketMQ's classic protocol that a consumer of the demo makes: where a topic
 * is, its ends, its messages; and the one that makes it. For the demo only, which must see messages
 * as a consumer does and not as their producer says; programs use an official client.
 */
import { createHmac } from "node:crypto";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { RocketmqClassicOptions } from "rowpost/rocketmq-classic";

/** What a server answered. */
export interface Answer {
  readonly code: number;
  readonly remark: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** One connection to one server. */
export interface ClassicConnection {
  /** Rejects when the connection breaks, or no answer comes. */
  ask(code: number, fields: Readonly<Record<string, string>>): Promise<Answer>;
  close(): void;
}

const ANSWER_WITHIN_MS = 10_000;

/** `address` is `host:port`. */
export function connectClassic(address: string, options: RocketmqClassicOptions): ClassicConnection {
  const socket = open(address, options);
  const waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>();
  let received = Buffer.alloc(0);
  let last = 0;

  function end(error: Error): void {
    socket.destroy();
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  }

  socket.on("error", end);
  socket.on("close", () => end(new Error(`${address} closed the connection`)));
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 8 && received.length >= 4 + received.readUInt32BE(0)) {
      const size = 4 + received.readUInt32BE(0);
      const { opaque, ...answer } = decoded(received.subarray(4, size));
      received = received.subarray(size);
      waiting.get(opaque)?.resolve(answer);
      waiting.delete(opaque);
    }
  });

  return {
    ask(code, fields) {
      last += 1;
      const opaque = last;
      return new Promise<Answer>((resolve, reject) => {
        const timer = setTimeout(() => end(new Error(`${address} gave no answer`)), ANSWER_WITHIN_MS);
        const settled = <Value>(settle: (value: Value) => void) => {
          return (value: Value): void => {
            clearTimeout(timer);
            settle(value);
          };
        };
        waiting.set(opaque, { resolve: settled(resolve), reject: settled(reject) });
        if (socket.destroyed) end(new Error(`${address} closed the connection`));
        else
          socket.write(
            frame({ code, opaque, language: "OTHER", version: 0, flag: 0, extFields: signed(fields, options) }),
          );
      });
    },
    close: () => end(new Error("the consumer was closed")),
  };
}

function open(address: string, { tls, brokerAddress }: RocketmqClassicOptions): Socket {
  const target = brokerAddress?.(address) ?? address;
  const colon = target.lastIndexOf(":");
  const host = target.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  const place = { host, port: Number(target.slice(colon + 1)) };
  if (tls === undefined || tls === false) return connectTcp(place);
  const { ca, cert, key, rejectUnauthorized, serverName } = tls === true ? {} : tls;
  const pem = (text: string | Uint8Array | undefined): Buffer | undefined =>
    text === undefined ? undefined : Buffer.from(text);
  const name = serverName ?? (isIP(host) === 0 ? host : undefined);
  return connectTls({
    ...place,
    ...{ ca: pem(ca), cert: pem(cert), key: pem(key), rejectUnauthorized: rejectUnauthorized ?? true },
    ...(name !== undefined && { servername: name }),
  });
}

/** The header's length with its form (0: JSON), the header; no body. */
function frame(header: object): Buffer {
  const text = Buffer.from(JSON.stringify(header));
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(4 + text.length, 0);
  lengths.writeUInt32BE(text.length, 4);
  return Buffer.concat([lengths, text]);
}

function decoded(bytes: Buffer): Answer & { readonly opaque: number } {
  const end = 4 + (bytes.readUInt32BE(0) & 0xff_ff_ff);
  const header = JSON.parse(bytes.toString("utf8", 4, end)) as {
    readonly code: number;
    readonly opaque: number;
    readonly remark?: string | null;
    readonly extFields?: Record<string, string> | null;
  };
  const { code, opaque, remark, extFields } = header;
  return { code, opaque, remark: remark ?? "", fields: extFields ?? {}, body: bytes.subarray(end) };
}

/** The values of all fields in the order of their names, under HMAC-SHA1. */
function signed(
  given: Readonly<Record<string, string>>,
  { accessKey, secretKey, sessionToken }: RocketmqClassicOptions,
): Readonly<Record<string, string>> {
  if (accessKey === undefined || secretKey === undefined) return given;
  const fields: Record<string, string> = { ...given, AccessKey: accessKey };
  if (sessionToken !== undefined) fields["SecurityToken"] = sessionToken;
  const names = Object.keys(fields).sort();
  const hmac = createHmac("sha1", secretKey).update(names.map((name) => fields[name]).join(""));
  return { ...fields, Signature: hmac.digest("base64") };
}
