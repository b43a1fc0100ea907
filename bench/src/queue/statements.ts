/** The library's own statement builders of the queue, as far as the raw loop needs them. */
import type { BareStatement } from "../servers/server.ts";

/** The builders that the loop uses. */
export interface RawQueueStatements {
  readonly consume: {
    insertProgress(key: Key, start: "start"): BareStatement;
    readMessages(request: {
      readonly topic: string;
      readonly month: number;
      readonly partition: number;
      readonly fromId: string;
      readonly toId: string;
      readonly limit: number;
      readonly bodyLimit: number;
    }): BareStatement;
    moveProgress(
      key: Key,
      request: {
        readonly partition: number;
        readonly owner: string;
        readonly epoch: string;
        readonly fromId: string;
        readonly orId: string;
        readonly nextId: string;
        readonly month: number;
      },
    ): BareStatement;
    insertRecords(
      key: Key,
      request: {
        readonly month: number;
        readonly round: number;
        readonly place: { readonly ip: string; readonly port: null; readonly instance: string };
        readonly records: readonly RawRecord[];
      },
    ): BareStatement;
  };
}

/** A group of a topic. */
export interface Key {
  readonly topic: string;
  readonly group: string;
}

/** A consumption record. */
export interface RawRecord {
  readonly id: string;
  readonly lastId: string | null;
  readonly messages: number;
  readonly key: string | null;
  readonly attempt: number;
  readonly result: "consumed";
  readonly durationMs: number;
  readonly error: null;
}
