import { Inject } from "@nestjs/common";
import type { Outbox as RowpostOutbox, Relay as RowpostRelay } from "rowpost";
import { RowpostConsumers } from "./consumer-host.ts";
import { RowpostHealthIndicator } from "./health.ts";

/**
 * A token with the name of its type, so that `constructor(readonly outbox: Outbox)` needs no
 * decorator.
 */
type Token<T> = abstract new () => T;

/** The outbox: its type and its injection token. */
export type Outbox = RowpostOutbox;
export const Outbox: Token<Outbox> = class Outbox {} as unknown as Token<Outbox>;

/**
 * The relay of this process, for its events and counts; the module starts and stops it. Injects
 * `undefined` if the module has no `relay` option.
 */
export type Relay = RowpostRelay;
export const Relay: Token<Relay> = class Relay {} as unknown as Token<Relay>;

/** Token of an outbox: the class {@link Outbox}, or that of the module with this name. */
export function getOutboxToken(name?: string): Token<Outbox> | string {
  return name === undefined ? Outbox : `rowpost:outbox:${name}`;
}

/** Token of a relay: the class {@link Relay}, or that of the module with this name. */
export function getRelayToken(name?: string): Token<Relay> | string {
  return name === undefined ? Relay : `rowpost:relay:${name}`;
}

/** Token of a health indicator: its class, or for a named module its own token. */
export function getHealthToken(name?: string): typeof RowpostHealthIndicator | string {
  return name === undefined ? RowpostHealthIndicator : `rowpost:health:${name}`;
}

/** Token of the consumers: their class, or for a named module its own token. */
export function getConsumersToken(name?: string): typeof RowpostConsumers | string {
  return name === undefined ? RowpostConsumers : `rowpost:consumers:${name}`;
}

/** Injects the outbox of the module with this name: `@InjectOutbox("payments")`. */
export function InjectOutbox(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getOutboxToken(name));
}

/** Injects the relay of the module with this name. */
export function InjectRelay(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getRelayToken(name));
}
