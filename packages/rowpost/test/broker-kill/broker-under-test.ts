/**
 * What the kill rounds need of a broker: topics, an outage and its end, and a consumer that reads
 * what the broker really holds.
 */
import type { Broker } from "../../src/brokers/broker.ts";

/** One broker, and one way to lose it. */
export interface BrokerUnderTest {
  /** False where the broker drops copies by their id: then none may arrive. */
  readonly keepsCopies: boolean;
  /** A new adapter on the address that goes away. */
  createBroker(): Broker;
  /**
   * Makes a topic for messages without ordering keys, or for messages that keep their order per
   * key. Resolves when the broker takes messages for it.
   */
  makeTopic(name: string, kind: "loose" | "ordered"): Promise<void>;
  removeTopic(name: string): Promise<void>;
  /**
   * Takes the broker away in the middle of whatever it does; the blow falls before this returns its
   * promise. Resolves when it is gone.
   */
  takeAway(): Promise<void>;
  /** Resolves when the broker is there again. */
  bringBack(): Promise<void>;
  /**
   * Reads a topic from its beginning to its end with a consumer. Resolves with the message keys
   * (header `rowpost-key`), copies included, those of one ordering key in the order in which the
   * broker stored them. Rejects when it did not come to the end within {@link READ_WITHIN_MS}.
   */
  readAll(topic: string): Promise<readonly string[]>;
  /** Ends and removes what this object has started. */
  close(): Promise<void>;
}

/** Longest time that reading a topic may take. */
export const READ_WITHIN_MS = 60_000;
