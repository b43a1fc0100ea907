import { serverMessage } from "./without-values.ts";

/**
 * Base of all errors that rowpost throws on purpose. `code` is stable across versions; `message`
 * may improve.
 */
export class RowpostError extends Error {
  /** Stable upper-case name to branch on. */
  readonly code: string;
  /** True when the same call can succeed later without a change of code or configuration. */
  readonly retriable: boolean;

  constructor(code: string, message: string, options: { cause?: unknown; retriable?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.retriable = options.retriable ?? false;
  }
}

/**
 * Options or configuration are wrong; the message names the option and its valid values. Nothing
 * was started.
 */
export class ConfigurationError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("CONFIGURATION", message, options);
  }
}

/** An optional peer package is missing or too old. The message holds the `npm install` line. */
export class MissingPeerError extends RowpostError {
  constructor(
    packageName: string,
    neededFor: string,
    options: { cause?: unknown; range?: string; unfit?: boolean } = {},
  ) {
    const spec = options.range === undefined ? packageName : `"${packageName}@${options.range}"`;
    const what = options.unfit === true ? "another version of the package" : "the package";
    super("MISSING_PEER", `${neededFor} needs ${what} ${packageName}: npm install ${spec}`, {
      cause: options.cause,
    });
  }
}

/** A message cannot be enqueued as it is (too long, not JSON-able, …). Nothing was written. */
export class InvalidMessageError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("INVALID_MESSAGE", message, options);
  }
}

/** (type, key) already exists. The transaction is still usable, without any row of the call. */
export class DuplicateMessageError extends RowpostError {
  /** The existing identities, as far as the database named them. */
  readonly duplicates: readonly { readonly type: string; readonly key: string }[];

  constructor(
    duplicates: readonly { readonly type: string; readonly key: string }[],
    options: { cause?: unknown } = {},
  ) {
    const first = duplicates[0];
    const what = first === undefined ? "a message" : `message ${first.type}:${first.key}`;
    super(
      "DUPLICATE_MESSAGE",
      `${what} is in the table already; pass onDuplicate: "ignore" where that is expected`,
      options,
    );
    this.duplicates = duplicates;
  }
}

/**
 * The handle given to enqueue is not an open transaction (a pool, a closed transaction, an unknown
 * object). Nothing was written.
 */
export class TransactionRequiredError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("TRANSACTION_REQUIRED", message, options);
  }
}

/**
 * The database ended the transaction (deadlock, failed statement, lost connection). All of its work
 * is gone; run it again (rule: ended-transaction).
 */
export class TransactionLostError extends RowpostError {
  constructor(message: string, options: { cause?: unknown; retriable?: boolean } = {}) {
    super("TRANSACTION_LOST", message, { retriable: true, ...options });
  }
}

/**
 * The work of an `outbox.transaction` returned before an enqueue or query was done: an `await` is
 * missing. It was rolled back (rule: awaited-work).
 */
export class MissingAwaitError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("MISSING_AWAIT", message, options);
  }
}

/**
 * The database is unreachable or did not answer in time; the outcome of the statement may be
 * unknown.
 */
export class DatabaseUnavailableError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("DATABASE_UNAVAILABLE", message, { ...options, retriable: true });
  }
}

/**
 * A conflict with another transaction (deadlock, lock wait time-out, serialization failure, SQLite
 * busy). The statement and its transaction had no effect; the work can be repeated at once.
 */
export class DatabaseConflictError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("DATABASE_CONFLICT", message, { ...options, retriable: true });
  }
}

/** COMMIT got no answer, or an error: the transaction may have taken effect. */
export class CommitUnknownError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("COMMIT_UNKNOWN", message, { ...options, retriable: true });
  }
}

/**
 * The database refused to write a row: a text too long for its column or outside its character set,
 * a CHECK, a unique key, a trigger. Nothing of the statement was written. The message includes the
 * database's text.
 */
export class RowRefusedError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("ROW_REFUSED", message, options);
  }
}

/**
 * The table, a column or a migration is missing or differs from the layout. The message names it
 * and the command to fix it.
 */
export class SchemaError extends RowpostError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("SCHEMA", message, options);
  }
}

/**
 * The database user lacks a right. The message says what was refused; the page on database rights
 * has the GRANTs for enqueue, relay and operator.
 */
export class PermissionError extends RowpostError {
  constructor(what: string, options: { cause?: unknown } = {}) {
    super("PERMISSION", `${what}; the page "Database rights" of the docs has the GRANTs`, options);
  }
}

/** An invalid name of a topic or group of the message queue. No SQL was run. */
export class InvalidNameError extends RowpostError {
  constructor(message: string) {
    super("INVALID_NAME", message);
  }
}

/** The message queue has no such topic. Nothing was written. */
export class UnknownTopicError extends RowpostError {
  /** The requested topic. */
  readonly topic: string;

  constructor(topic: string) {
    super(
      "UNKNOWN_TOPIC",
      `the message queue has no topic "${topic}"; queue.createTopic({ topic: "${topic}" }) or "rowpost queue create ${topic}" makes it`,
    );
    this.topic = topic;
  }
}

/**
 * The broker cannot be used: unreachable, wrong credentials, or a configuration that cannot prove
 * delivery.
 */
export class BrokerError extends RowpostError {
  constructor(code: string, message: string, options: { cause?: unknown; retriable?: boolean } = {}) {
    super(code, message, options);
  }
}

/** For `throw { code, msg }`: its fields, when it has no text of its own. */
function textOf(thrown: unknown): string {
  const text = String(thrown);
  return text === "[object Object]" ? JSON.stringify(thrown).slice(0, 1_000) : text;
}

/** Text for logs and `fail_reason`: code and message. */
export function describeError(error: unknown): string {
  try {
    if (!(error instanceof Error)) return textOf(error);
    const code = "code" in error && typeof error.code === "string" ? `${error.code}: ` : "";
    return `${code}${serverMessage(error)}`;
  } catch {
    // Anything can be thrown: an object without a prototype has no text, and a Symbol cannot be
    // concatenated.
    return "something that has no text was thrown";
  }
}
