import type { KafkaTlsOptions } from "rowpost/kafka";

export interface NodeTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly rejectUnauthorized: boolean;
  readonly servername?: string;
}

export function tlsOf({ ca, cert, key, rejectUnauthorized = true, serverName }: KafkaTlsOptions): NodeTls {
  const given = Object.entries({ ca: pem(ca), cert: pem(cert), key: pem(key), servername: serverName });
  return { rejectUnauthorized, ...Object.fromEntries(given.filter(([, text]) => text !== undefined)) };
}

function pem(text: string | Uint8Array | undefined): string | Buffer | undefined {
  return text instanceof Uint8Array ? Buffer.from(text) : text;
}
