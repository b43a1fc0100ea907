/** `outbox.confirm`: checks a consumer's input and runs it in a transaction. */
import type { Database } from "../databases/database.ts";
import { checkText } from "../message/check-text.ts";
import { DEFAULT_LIMITS } from "../message/message.ts";
import { CONSUMER_LENGTH, type ConfirmRule } from "../message/message-type.ts";
import { refuseUnknown } from "../runtime/check-options.ts";
import { ConfigurationError, DatabaseConflictError, InvalidMessageError } from "../runtime/errors.ts";
import type { Transaction } from "../transactions/executor.ts";
import type { CheckedConfirmation, Confirmation, ConfirmationResult, ConfirmationWriter } from "./confirmations.ts";

/** The part of a message type that `outbox.confirm` uses, as made by `messageType`. */
export interface ConfirmedType {
  /** Name of the type. */
  readonly name: string;
  /** Undefined: any confirmation counts. */
  readonly confirm?: Pick<ConfirmRule, "consumers"> | undefined;
}

export interface ConfirmParts {
  readonly database: Pick<Database, "transaction" | "executor">;
  readonly writer: ConfirmationWriter;
  readonly types: ReadonlyMap<string, ConfirmedType>;
}

/** More would keep their rows locked for longer. */
const AT_ONCE = 500;
/** A deadlock with a relay that settles the same messages is gone at the second try. */
const TRIES = 5;
const FIELDS = "{ type, key, consumer?, error?, attempt? }";

export function createConfirm({ database, types, writer }: ConfirmParts) {
  async function inOwn<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await database.transaction(work);
      } catch (error) {
        if (!(error instanceof DatabaseConflictError) || tries === TRIES) throw error;
      }
    }
  }

  /**
   * A second transaction keeps unknown messages: if it fails, the confirmations stand and the
   * result says so. If the process dies in between, the consumer confirms again.
   */
  async function confirmOwn(list: readonly CheckedConfirmation[]): Promise<ConfirmationResult[]> {
    const results = await inOwn((tx) => writer.confirm(tx, list));
    const unknown = list.filter((_, index) => results[index]?.status === "unknown");
    if (unknown.length === 0) return results;
    const kept = await inOwn((tx) => writer.keepUnknown(tx, unknown)).catch(() => false);
    return results.map((result) => (result.status === "unknown" ? { ...result, kept } : result));
  }

  return async function confirm(
    given: readonly Confirmation[],
    options: { readonly tx?: unknown } = {},
  ): Promise<ConfirmationResult[]> {
    if (!Array.isArray(given)) throw new ConfigurationError(`outbox.confirm takes a list of ${FIELDS}, and { tx }`);
    refuseUnknown("confirm", options, ["tx"]);
    const checked = given.map((each) => check(each, types));
    if ("tx" in options) {
      const executor = database.executor(options.tx);
      if (checked.length === 0) return [];
      const writing = writer.confirm(executor, checked);
      return await (executor.watch?.(writing) ?? writing);
    }
    const results: ConfirmationResult[] = [];
    for (let from = 0; from < checked.length; from += AT_ONCE) {
      results.push(...(await confirmOwn(checked.slice(from, from + AT_ONCE))));
    }
    return results;
  };
}

function check(given: unknown, types: ConfirmParts["types"]): CheckedConfirmation {
  if (typeof given !== "object" || given === null) {
    throw new ConfigurationError(`a confirmation is ${FIELDS}`);
  }
  refuseUnknown("confirm", given, ["type", "key", "consumer", "error", "attempt"]);
  const { attempt, consumer, error, key, type } = given as Confirmation;
  const name = `confirmation of ${String(type)}:${String(key)}`;
  checkText(name, "type", type, DEFAULT_LIMITS.type);
  checkText(name, "key", key, DEFAULT_LIMITS.key);
  if (consumer !== undefined) checkText(name, "consumer", consumer, CONSUMER_LENGTH);
  if (error !== undefined && typeof error !== "string") {
    throw new InvalidMessageError(`${name}: error must be a string that says why, such as error.message`);
  }
  if (attempt !== undefined && !Number.isInteger(attempt)) {
    throw new InvalidMessageError(`${name}: attempt must be a whole number: Number(headers["rowpost-attempt"])`);
  }
  const consumers = types.get(type)?.confirm?.consumers;
  if (consumers !== undefined && (consumer === undefined || !consumers.includes(consumer))) {
    const given = consumer === undefined ? "says no consumer" : `says consumer: ${JSON.stringify(consumer)}`;
    throw new InvalidMessageError(`${name} ${given}; the message type names ${consumers.join(", ")}`);
  }
  return { type, key, consumer, error, attempt, consumers };
}
