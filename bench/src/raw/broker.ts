/**
 * A real broker in the benchmark: a topic of the run, and the bare client for comparison with the
 * adapter.
 */
import type { OutgoingMessage } from "rowpost";

/**
 * The client library without rowpost, with the same fields and headers, and the same guarantee
 * before a batch counts as stored.
 */
export interface BareProducer {
  /** Resolves when the broker has acknowledged every message; rejects if it refused one. */
  publish(batch: readonly OutgoingMessage[]): Promise<void>;
  close(): Promise<void>;
}

export interface BrokerServer {
  readonly name: string;
  /** Its main port, for finding its process. */
  readonly port: number;
  makeTopic(topic: string): Promise<void>;
  /** Empties the topic if its content slows the broker down; else does nothing. */
  emptyTopic(topic: string): Promise<void>;
  removeTopic(topic: string): Promise<void>;
  bareProducer(topic: string): Promise<BareProducer>;
  close(): Promise<void>;
}
