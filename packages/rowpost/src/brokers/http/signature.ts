/**
 * Id and signature of a webhook according to Standard Webhooks 1.0.0: headers `webhook-id`,
 * `webhook-timestamp`, `webhook-signature`; HMAC-SHA256 over `{id}.{timestamp}.{body}` in base64
 * with the prefix `v1,`; several signatures are separated by a blank.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { ConfigurationError } from "../../runtime/errors.ts";
import { percentEncode } from "../publishing/percent-encoding.ts";

/** The id is also the receipt if the receiver gives none, and `message_id` holds 255 characters. */
const MAX_ID_LENGTH = 255;

/**
 * `webhook-id` of a message: the same for every attempt and different for every (type, key), so
 * that receivers can deduplicate by it.
 *
 * `type:key`, percent-encoded except for letters, digits and `-_~!*'()`. The full stop is encoded
 * because the specification forbids it: `{id}.{timestamp}.{body}` could be split in two ways under
 * one signature. A text longer than 255 characters, such as a long key in Chinese, is replaced by
 * `sha256-` and its digest.
 */
export function webhookId(type: string, key: string): string {
  const readable = `${percentEncode(type, ID_UNSAFE)}:${percentEncode(key, ID_UNSAFE)}`;
  if (readable.length <= MAX_ID_LENGTH) return readable;
  return `sha256-${createHash("sha256").update(readable).digest("base64url")}`;
}

const ID_UNSAFE = /[^A-Za-z0-9_~!*'()-]/gu;

/**
 * Bytes of a signing secret: `whsec_` and base64, or any text. Throws `ConfigurationError` if it is
 * empty, invalid base64, or an asymmetric key (`whsk_`, not supported).
 */
export function secretBytes(secret: string): Buffer {
  if (secret.startsWith("whsk_") || secret.startsWith("whpk_")) {
    throw new ConfigurationError("http broker: asymmetric keys (whsk_, whpk_) are not supported; give a whsec_ secret");
  }
  if (!secret.startsWith("whsec_")) {
    if (secret.trim() === "")
      throw new ConfigurationError("http broker: the secret is empty; leave it out to send unsigned");
    return Buffer.from(secret);
  }
  const encoded = secret.slice("whsec_".length);
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) {
    throw new ConfigurationError("http broker: what follows whsec_ in the secret must be base64");
  }
  return Buffer.from(encoded, "base64");
}

export interface SignedContent {
  readonly id: string;
  /** Seconds since 1970, as text. */
  readonly timestamp: string;
  readonly body: Uint8Array;
}

export function sign(content: SignedContent, secrets: readonly Buffer[]): string {
  return secrets.map((secret) => `v1,${digest(content, secret).toString("base64")}`).join(" ");
}

function digest({ id, timestamp, body }: SignedContent, secret: Buffer): Buffer {
  return createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest();
}

/** Options of {@link verifyWebhook}. */
export interface VerifyWebhookOptions {
  /** The sender's secret; several during a rotation. */
  readonly secret: string | readonly string[];
  /**
   * Headers of the request with names in lower case, as `request.headers` of node:http has them.
   */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The raw body. A JSON body that was parsed and printed again has other bytes. */
  readonly body: Uint8Array | string;
  /**
   * Largest difference between the timestamp and this host's clock, in ms, against replays. Default
   * 300,000.
   */
  readonly toleranceMs?: number | undefined;
  /** Epoch milliseconds. Default `Date.now()`. */
  readonly nowMs?: number | undefined;
}

/**
 * Whether a webhook request was signed with one of the secrets, within the tolerance, over exactly
 * this body. For receivers. Never throws because of the request.
 */
export function verifyWebhook(options: VerifyWebhookOptions): boolean {
  const { headers, toleranceMs = 300_000, nowMs = Date.now() } = options;
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(
    (name) => headers[name],
  );
  if (typeof id !== "string" || typeof timestamp !== "string" || typeof signatures !== "string") return false;
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(Number(timestamp) * 1_000 - nowMs) > toleranceMs) return false;
  const body = typeof options.body === "string" ? Buffer.from(options.body) : options.body;
  const expected = [options.secret].flat().map((secret) => digest({ id, timestamp, body }, secretBytes(secret)));
  return signatures.split(" ").some((signature) => {
    if (!signature.startsWith("v1,")) return false;
    const given = Buffer.from(signature.slice(3), "base64");
    return expected.some((digested) => given.length === digested.length && timingSafeEqual(given, digested));
  });
}

/** Options of {@link signWebhook}. */
export interface SignWebhookOptions {
  /** Sent as `webhook-id`; without a full stop. */
  readonly id: string;
  /** Sent as `webhook-timestamp`: seconds since 1970. */
  readonly timestamp: string;
  /** The body as it is sent. */
  readonly body: Uint8Array | string;
  /** `whsec_` and base64, or any text; several during a rotation, the newest first. */
  readonly secret: string | readonly string[];
}

/**
 * The header `webhook-signature` of a request of one's own, which {@link verifyWebhook} takes.
 * Throws `ConfigurationError` for a secret that is none.
 */
export function signWebhook({ body, id, secret, timestamp }: SignWebhookOptions): string {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  return sign({ id, timestamp, body: bytes }, [secret].flat().map(secretBytes));
}
