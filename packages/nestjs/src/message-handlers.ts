import type { DiscoveryService } from "@nestjs/core";
import { ConfigurationError, InvalidMessageError } from "rowpost";
import type { DeliveredMessage, HandlerContext } from "rowpost/consume";
import { ANY_TYPE, type MessageContext, type MessageMethod, marksOf } from "./on-message.ts";

export interface MessageHandler {
  readonly type: string;
  /** Undefined: the only one. */
  readonly consumer: string | undefined;
  /** For texts: `Points.give`. */
  readonly where: string;
  call(message: DeliveredMessage, context: MessageContext<unknown>): unknown;
}

type Wrapper = ReturnType<DiscoveryService["getProviders"]>[number];

/** Of all modules. Throws `ConfigurationError` for a provider that is no singleton. */
export function findHandlers(discovery: DiscoveryService): readonly MessageHandler[] {
  const seen = new Set<object>();
  return [...discovery.getProviders(), ...discovery.getControllers()].flatMap((wrapper) => {
    const prototype = prototypeOf(wrapper);
    const found = prototype === undefined ? [] : marksOf(prototype);
    if (found.length === 0) return [];
    const name = (prototype?.constructor as { readonly name?: string } | undefined)?.name ?? String(wrapper.name);
    if (!wrapper.isDependencyTreeStatic() || wrapper.isTransient) {
      throw new ConfigurationError(
        `${name} has an @OnMessage and is no singleton: a message belongs to no request. Take the scope off it and off what is injected into it`,
      );
    }
    const instance = wrapper.instance as Readonly<Record<string | symbol, MessageMethod>>;
    // The same instance under another token, for example by useExisting.
    if (seen.has(instance)) return [];
    seen.add(instance);
    return found.map(({ consumer, method, type }) => ({
      consumer,
      type,
      where: `${name}.${String(method)}`,
      call: (message: DeliveredMessage, context: MessageContext<unknown>) =>
        instance[method]?.call(instance, message, context as HandlerContext<never, never>),
    }));
  });
}

/** A request-scoped provider has no instance. */
function prototypeOf({ instance, isNotMetatype, metatype }: Wrapper): object | undefined {
  if (!isNotMetatype) return (metatype as { readonly prototype?: object }).prototype;
  return typeof instance === "object" && instance !== null ? (Object.getPrototypeOf(instance) as object) : undefined;
}

export interface ConsumerNames {
  /** Those that this process runs. */
  readonly run: readonly string[];
  /** Including those switched off here. */
  readonly all: readonly string[];
}

/** The methods of each consumer by type. Throws `ConfigurationError`. */
export function handlersByConsumer(
  { all, run }: ConsumerNames,
  handlers: readonly MessageHandler[],
): ReadonlyMap<string, ReadonlyMap<string, MessageHandler>> {
  const byConsumer = new Map(all.map((name) => [name, new Map<string, MessageHandler>()]));
  for (const handler of handlers) {
    const name = handler.consumer ?? onlyOne(all, handler);
    const byType = byConsumer.get(name);
    if (byType === undefined) throw noConsumer(handler, name, all);
    const other = byType.get(handler.type);
    if (other !== undefined) {
      const both = other.where === handler.where ? `${handler.where} twice` : `${other.where} and ${handler.where}`;
      throw new ConfigurationError(
        `the type ${handler.type} of the consumer ${name} is taken by ${both}: one method handles it, and one module provides its class`,
      );
    }
    byType.set(handler.type, handler);
  }
  for (const name of run) {
    if (byConsumer.get(name)?.size === 0) {
      throw new ConfigurationError(
        `the consumer ${name} has no method: decorate one of a provider with @OnMessage("order.paid", { consumer: "${name}" }), or take it out of \`consumers\``,
      );
    }
  }
  return byConsumer;
}

function onlyOne(names: readonly string[], handler: MessageHandler): string {
  const [only, ...others] = names;
  if (only === undefined) throw noConsumer(handler, undefined, names);
  if (others.length === 0) return only;
  throw new ConfigurationError(
    `${handler.where} says no consumer and there are several: @OnMessage("${handler.type}", { consumer: "${only}" }); ${namesOf(names)}`,
  );
}

function noConsumer({ type, where }: MessageHandler, name: string | undefined, names: readonly string[]): Error {
  const what = name === undefined ? "there is none" : `there is no consumer ${name}; ${namesOf(names)}`;
  return new ConfigurationError(
    `${where} takes messages of the type ${type} and ${what}: add it to \`consumers\` of RowpostModule, with \`false\` where this process does not run it`,
  );
}

function namesOf(names: readonly string[]): string {
  return names.length === 0 ? "there is none" : `there is ${names.join(", ")}`;
}

/** Calls the method of a message's type. Throws `InvalidMessageError` if there is none. */
export async function dispatch(
  consumer: string,
  byType: ReadonlyMap<string, MessageHandler>,
  message: DeliveredMessage,
  context: MessageContext<unknown>,
): Promise<void> {
  const handler = byType.get(message.type) ?? byType.get(ANY_TYPE);
  if (handler === undefined) {
    throw new InvalidMessageError(
      `no @OnMessage of the consumer ${consumer} takes the type ${message.type}; @OnMessage("*") takes all that no other does`,
    );
  }
  await handler.call(message, context);
}
