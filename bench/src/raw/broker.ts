/**
 * A real broker as the benchmark sees it: a topic of the run's own, and the bare client that the
 * adapter is measured against.
 */
import type { OutgoingMessage } from "rowpost";

/**
 * The client library without rowpost: the same fields and headers, and the same guarantee before it
 * says that a batch is stored.
 */
export interface BareProducer {
  /**
   * Resolves when the broker has acknowledged every message of the batch; rejects when it refused
   * one.
   */
  publish(batch: readonly OutgoingMessage[]): Promise<void>;
  close(): Promise<void>;
}

/** A broker at an address. */
export interface BrokerServer {
  /** For people, such as `RocketMQ`. */
  readonly name: string;
  /** Its main port, to find its process by. */
  readonly port: number;
  makeTopic(topic: string): Promise<void>;
  /** Forgets what the topic holds, where a broker slows down with what it holds; else nothing. */
  emptyTopic(topic: string): Promise<void>;
  removeTopic(topic: string): Promise<void>;
  bareProducer(topic: string): Promise<BareProducer>;
  close(): Promise<void>;
}
