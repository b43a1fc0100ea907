/**
 * Scope of each error of SQS or the AWS SDK. Errors marked "seen" were provoked on ElasticMQ 1.6.
 */
import { describeError } from "../../runtime/errors.ts";
import type { PublishFailed } from "../broker.ts";
import type { LoadFailure, Outcome } from "../publishing/call.ts";
import { failed, failedBy, type Rule } from "../publishing/failures.ts";
import type { BatchAnswer, FailedEntry } from "./client.ts";

/** Throttling gives no time. */
const BUSY = { scope: "destination", retryAfterMs: 1000 } as const;
const NEVER = { scope: "message", retriable: false } as const;
const MISSING = {
  ...({ scope: "message", absent: "missing" } as const),
  advice: "create the queue, or map the topic with the option queue",
};
const DENIED = { scope: "destination", advice: "allow sqs:SendMessage and sqs:GetQueueUrl for this queue" } as const;
const LOGIN = {
  scope: "connection",
  advice: "check the credentials that the AWS SDK finds: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, profile, or role",
} as const;

const RULES: Readonly<Record<string, Rule>> = {
  // Seen: the queue of a topic does not exist.
  QueueDoesNotExist: MISSING,
  NonExistentQueue: MISSING,
  QueueDeletedRecently: MISSING,
  RequestThrottled: BUSY,
  ThrottlingException: BUSY,
  Throttling: BUSY,
  OverLimit: BUSY,
  KmsThrottled: BUSY,
  ServiceUnavailable: BUSY,
  KmsAccessDenied: DENIED,
  KmsDisabled: DENIED,
  KmsNotFound: DENIED,
  AccessDenied: DENIED,
  AccessDeniedException: DENIED,
  InvalidMessageContents: NEVER,
  InvalidAttributeValue: NEVER,
  InvalidParameterValue: NEVER,
  MissingParameter: NEVER,
  UnsupportedOperation: NEVER,
  BatchRequestTooLong: NEVER,
  CredentialsProviderError: LOGIN,
  ExpiredToken: LOGIN,
  ExpiredTokenException: LOGIN,
  InvalidClientTokenId: LOGIN,
  InvalidSecurity: LOGIN,
  InvalidSignatureException: LOGIN,
  MissingAuthenticationToken: LOGIN,
  RequestExpired: { scope: "connection", advice: "set this machine's clock" },
  SignatureDoesNotMatch: LOGIN,
  UnrecognizedClientException: LOGIN,
};

/** The connection failed: nothing was handed over. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
]);

export function failureOf(error: unknown, label: string): LoadFailure {
  const { name = "", code = "" } = error instanceof Error ? (error as { name?: string; code?: unknown }) : {};
  const known = [name, String(code)].map((each) => each.split(".").at(-1) ?? "").find((each) => each in RULES);
  const text = `${label}: ${describeError(error)}`;
  if (known !== undefined) return ruled(known, text);
  if (typeof code === "string" && NOT_CONNECTED.has(code)) return failed("connection", code, text);
  if (/certificate|CERT_|SELF_SIGNED/.test(`${String(code)} ${text}`)) return failed("connection", String(code), text);
  if (/did not establish a connection/.test(text)) return failed("connection", "CONNECT_TIMEOUT", text);
  const { $metadata: { httpStatusCode = 0 } = {} } = (error ?? {}) as { $metadata?: { httpStatusCode?: number } };
  // The server understood and refused the request, so it took nothing.
  if (httpStatusCode >= 400 && httpStatusCode < 500) return { ...failed("message", name, text), divisible: true };
  return failed("unknown", typeof code === "string" && code !== "" ? code : name || "NO_ANSWER", text);
}

function ruled(name: string, text: string): LoadFailure {
  const rule = RULES[name] ?? { scope: "message" };
  const failure = failedBy(rule, name, text);
  return rule === NEVER ? { ...failure, divisible: true } : failure;
}

export function outcomesOf({ Successful = [], Failed = [] }: BatchAnswer, count: number): readonly Outcome[] {
  const sent = new Map(Successful.map(({ Id, MessageId }) => [Id, MessageId]));
  const refused = new Map(Failed.map((entry) => [entry.Id, entry]));
  return Array.from({ length: count }, (_, place) => {
    const receipt = sent.get(String(place));
    if (receipt !== undefined && receipt !== "") return receipt;
    const entry = refused.get(String(place));
    return entry === undefined ? UNTOLD : entryFailure(entry);
  });
}

const UNTOLD = failed("unknown", "NO_RESULT", "the answer of SQS says nothing of this message");

function entryFailure({ Code = "", Message = "", SenderFault = false }: FailedEntry): PublishFailed {
  const code = Code.split(".").at(-1) ?? "";
  const words = `SQS did not take it: ${Code}${Message === "" ? "" : `: ${Message}`}`;
  if (code in RULES) return ruled(code, words);
  // Not our fault: the server may have stored it.
  return SenderFault
    ? failed("message", code || "REFUSED", words, { retriable: false })
    : failed("unknown", code || "INTERNAL_ERROR", words);
}
