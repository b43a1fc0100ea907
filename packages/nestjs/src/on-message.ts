import { ConfigurationError, type Transaction } from "rowpost";
import type { DeliveredMessage, HandlerContext } from "rowpost/consume";

/** Context of a message; `Tx`: of the consumer's `transaction`. */
export type MessageContext<Tx = Transaction> = HandlerContext<unknown, Tx>;

/** A method for messages; both parameters are optional. */
export type MessageMethod = (message: DeliveredMessage, context: HandlerContext<never, never>) => unknown;

/** Options of {@link OnMessage}. */
export interface OnMessageOptions {
  /** Name of the consumer in the module's `consumers`. Default: the only one. */
  readonly consumer?: string | undefined;
}

/** Every type without a method of its own. */
export const ANY_TYPE = "*";

export interface Mark {
  readonly method: string | symbol;
  readonly type: string;
  readonly consumer: string | undefined;
}

/** By the prototype of the class with the method. */
const marks = new WeakMap<object, Mark[]>();

/**
 * Makes a method of a provider or a controller the handler of a message type:
 *
 *     @OnMessage("order.paid", { consumer: "points" })
 *     async give(message: DeliveredMessage, { tx }: MessageContext) { … }
 *
 * It is called once for each message, in a transaction that commits with it; a throw rolls back,
 * and the message is tried again, as `rowpost/consume` says. `"*"`: every type of the consumer that
 * no other method takes. Several on one method: one for each type. Guards, pipes and interceptors
 * do not run.
 *
 * The application does not start where two methods take the same type of one consumer, where there
 * is no such consumer, or where the provider is not a singleton.
 */
export function OnMessage(type: string, { consumer }: OnMessageOptions = {}) {
  return <Method extends MessageMethod>(
    prototype: object,
    method: string | symbol,
    _descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    if (typeof prototype === "function") {
      throw new ConfigurationError(`@OnMessage("${type}") is for methods of instances: ${String(method)} is static`);
    }
    if (typeof type !== "string" || type === "") {
      throw new ConfigurationError(`@OnMessage of ${String(method)} takes a message type, such as "order.paid"`);
    }
    const own = marks.get(prototype) ?? [];
    marks.set(prototype, own);
    own.push({ method, type, consumer });
  };
}

/** Marks of a class and its base classes; the last decorator of a method wins. */
export function marksOf(prototype: object): readonly Mark[] {
  const found: Mark[] = [];
  for (let each: object | null = prototype; each !== null; each = Object.getPrototypeOf(each) as object | null) {
    const known = new Set(found.map(({ method }) => method));
    found.push(...(marks.get(each) ?? []).filter(({ method }) => !known.has(method)));
  }
  return found;
}
