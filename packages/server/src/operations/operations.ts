/**
 * Previewed and running changes of many messages, in this process's memory. The audit in the
 * database has their start, each batch and their end.
 */
import { randomUUID } from "node:crypto";
import { describeError, type Logger } from "rowpost";
import type {
  ChangeConflict,
  ManyMessages,
  ManyProgress,
  MessageAdmin,
  MessageSummary,
  OperatorAction,
} from "rowpost/admin";

/** A change of many messages. When it is done, `total = changed + left + vanished`. */
export interface Operation {
  readonly id: string;
  readonly kind: ManyMessages["kind"];
  /** `preview`: not yet started; the last three are final. */
  readonly state: "preview" | "running" | "done" | "cancelled" | "failed";
  readonly filter: ManyMessages["filter"];
  /** `gte`: the search is not complete. */
  readonly total: { readonly value: number; readonly relation: "eq" | "gte" };
  readonly changed: number;
  readonly left: number;
  readonly vanished: number;
  /** The first of those left, in their current state. */
  readonly conflicts: readonly ChangeConflict[];
  readonly author: string;
  /** Empty in a preview. */
  readonly reason: string;
  readonly error: string | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
}

export interface Operations {
  /** Kept for ten minutes. */
  preview(
    request: ManyMessages & { readonly author: string },
  ): Promise<{ readonly operation: Operation; readonly samples: readonly MessageSummary[] }>;
  /**
   * Starts a preview; starting it again returns the same. Undefined: unknown here for this author,
   * or older than ten minutes.
   */
  start(request: {
    readonly id: string;
    readonly action: OperatorAction;
    readonly untilMs: number | undefined;
  }): Operation | undefined;
  /** Stops it after its batch, then resolves. Undefined: it does not run. */
  cancel(id: string): Promise<void> | undefined;
  read(id: string): Operation | undefined;
  /** The newest first, without previews. */
  list(): Operation[];
  /** Stops running ones after their batches. */
  close(): Promise<void>;
}

export const PREVIEW_MS = 600_000;
/** A preview of named messages has up to 10,000 of them. */
const MOST_PREVIEWS = 50;
const MOST_ENDED = 100;

type Bounded = ManyMessages & { readonly upToId: string };

interface Held {
  operation: Operation;
  readonly madeMs: number;
  /** Until it is started. */
  request: Bounded | undefined;
  readonly cancelling: AbortController;
  running: Promise<void>;
}

/** Uses the sessions of `admin`, which stays open. */
export function createOperations(admin: MessageAdmin, logger: Logger): Operations {
  const held = new Map<string, Held>();

  function forget(): void {
    const all = [...held.values()];
    const previews = all.filter(({ operation }) => operation.state === "preview");
    const ended = all.filter(({ operation }) => operation.endedAt !== null);
    const late = previews.filter(({ madeMs }) => performance.now() - madeMs > PREVIEW_MS);
    const tooMany = [...previews.slice(0, -MOST_PREVIEWS), ...ended.slice(0, -MOST_ENDED)];
    for (const { operation } of [...late, ...tooMany]) held.delete(operation.id);
  }

  async function run(
    one: Held,
    request: Bounded,
    { action, id, untilMs }: Parameters<Operations["start"]>[0],
  ): Promise<void> {
    const onProgress = (progress: ManyProgress): void => {
      one.operation = { ...one.operation, ...progress, total: atLeast(one.operation.total, progress) };
    };
    try {
      const options = { action, operation: id, untilMs, signal: one.cancelling.signal, onProgress };
      const { state } = await admin.changeMany({ ...request, ...options });
      end(one, state);
    } catch (error) {
      logger.warn("a change of many messages failed", { operation: id, error: describeError(error) });
      end(one, "failed", describeError(error));
    }
  }

  function end(one: Held, state: Operation["state"], error: string | null = null): void {
    const { changed, left, total, vanished } = one.operation;
    const found = { value: changed + left + vanished, relation: "eq" } as const;
    const ended = { state, error, endedAt: new Date().toISOString() };
    one.operation = { ...one.operation, ...ended, total: state === "done" ? found : total };
  }

  return {
    async preview({ author, ...request }) {
      const { complete, found, samples, upToId } = await admin.preview(request);
      const operation: Operation = {
        id: randomUUID(),
        kind: request.kind,
        state: "preview",
        filter: request.filter,
        author,
        reason: "",
        total: { value: found, relation: complete ? "eq" : "gte" },
        changed: 0,
        left: 0,
        vanished: 0,
        conflicts: [],
        error: null,
        createdAt: new Date().toISOString(),
        startedAt: null,
        endedAt: null,
      };
      const cancelling = new AbortController();
      const made = { operation, madeMs: performance.now(), request: { ...request, upToId }, cancelling };
      held.set(operation.id, { ...made, running: Promise.resolve() });
      forget();
      return { operation, samples };
    },

    start(order) {
      const { action, id } = order;
      forget();
      const one = held.get(id);
      if (one === undefined || one.operation.author !== action.author) return undefined;
      const { request } = one;
      if (request === undefined) return one.operation;
      one.request = undefined;
      const startedAt = new Date().toISOString();
      one.operation = { ...one.operation, state: "running", reason: action.reason, startedAt };
      one.running = run(one, request, order);
      return one.operation;
    },

    cancel(id) {
      const one = held.get(id);
      if (one?.operation.state !== "running") return undefined;
      one.cancelling.abort();
      return one.running;
    },

    read(id) {
      forget();
      return held.get(id)?.operation;
    },

    list: () =>
      [...held.values()]
        .map(({ operation }) => operation)
        .filter(({ startedAt }) => startedAt !== null)
        .reverse(),

    async close() {
      for (const { cancelling } of held.values()) cancelling.abort();
      await Promise.all([...held.values()].map(({ running }) => running));
    },
  };
}

/** More messages may match than in the preview, if they changed state since. */
function atLeast({ relation, value }: Operation["total"], progress: ManyProgress): Operation["total"] {
  return { relation, value: Math.max(value, progress.changed + progress.left + progress.vanished) };
}
