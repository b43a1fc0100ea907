/** Structural types of the queue's statement builders used by the raw loop. */
import type { BareStatement } from "../servers/server.ts";

export interface RawQueueStatements {
  readonly consume: {
    readMessages(request: {
      readonly topic: string;
      readonly month: number;
      readonly partition: number;
      readonly fromId: string;
      readonly toId: string;
      readonly limit: number;
      readonly bodyLimit: number;
    }): BareStatement;
    moveProgress(key: Key, move: RawMove): BareStatement;
    insertRecords(key: Key, recorded: RawRecords): BareStatement;
    /** Both in one statement, if the engine can. */
    moveAndRecord?(key: Key, move: RawMove, recorded: RawRecords): BareStatement;
  };
}

/** Position of a group before and after. */
export interface RawMove {
  readonly partition: number;
  readonly owner: string;
  readonly epoch: string;
  readonly fromId: string;
  readonly orId: string;
  readonly nextId: string;
  readonly month: number;
}

/** Consumed messages. */
export interface RawRecords {
  readonly month: number;
  readonly round: number;
  readonly place: { readonly ip: string; readonly port: null; readonly instance: string };
  readonly records: readonly RawRecord[];
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
