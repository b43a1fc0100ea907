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

export interface RawMove {
  readonly partition: number;
  readonly owner: string;
  readonly epoch: string;
  readonly fromId: string;
  readonly orId: string;
  readonly nextId: string;
  readonly month: number;
}

export interface RawRecords {
  readonly month: number;
  readonly round: number;
  readonly place: { readonly ip: string; readonly port: null; readonly instance: string };
  readonly records: readonly RawRecord[];
}

export interface Key {
  readonly topic: string;
  readonly group: string;
}

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
