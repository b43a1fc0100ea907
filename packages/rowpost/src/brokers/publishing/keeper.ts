import type { OutgoingMessage, PublishFailed, PublishResult } from "../broker.ts";
import { type AbortScope, orAborted } from "./abort-scope.ts";
import { failed, unusableFailure } from "./failures.ts";
import { ABORTED, failBatch } from "./results.ts";

export interface Keeper<Link, Failure = PublishFailed> {
  readonly current: () => Link | undefined;
  /**
   * The current connection, a new one, or why there is none. Never rejects; takes as long as
   * connecting.
   */
  readonly get: () => Promise<Link | Failure>;
  /** Failure of the last attempt, if at most this long ago. */
  readonly failureWithin: (ms: number) => Failure | undefined;
  /** Makes no more connections. Aborts the attempt under way and resolves when it has ended. */
  readonly close: () => Promise<void>;
}

export interface Keeping<Link, Failure> {
  /** One for each server. Each is tried once, starting with the one that worked last. */
  readonly ways: readonly ((closing: AbortSignal) => Promise<Link | Failure>)[];
  readonly isUsable: (link: Link) => boolean;
  readonly revives?: (link: Link) => Promise<boolean>;
  /** A failed attempt is reused for this long, which limits the rate of attempts. */
  readonly pauseMs?: number;
  readonly closed: Failure;
}

export function createKeeper<Link extends object, Failure extends PublishFailed = PublishFailed>({
  ways,
  isUsable,
  revives,
  pauseMs = 0,
  closed,
}: Keeping<Link, Failure>): Keeper<Link, Failure> {
  const closing = new AbortController();
  let link: Link | undefined;
  let finding: Promise<Link | Failure> | undefined;
  let last: { readonly failure: Failure; readonly at: number } | undefined;
  let first = 0;

  const current = (): Link | undefined => (link !== undefined && isUsable(link) ? link : undefined);
  const failureWithin = (ms: number): Failure | undefined =>
    last !== undefined && performance.now() - last.at < ms ? last.failure : undefined;

  async function find(): Promise<Link | Failure> {
    if (link !== undefined && (await revives?.(link)) === true) return link;
    const standing = failureWithin(pauseMs);
    if (standing !== undefined) return standing;
    let failure = closed;
    for (let turn = 0; turn < ways.length && !closing.signal.aborted; turn += 1) {
      const index = (first + turn) % ways.length;
      const found = await ways[index]?.(closing.signal).catch((error) => unusableFailure(error) as Failure);
      if (found === undefined) break;
      if (!("status" in found)) {
        first = index;
        link = found;
        last = undefined;
        return found;
      }
      failure = found;
    }
    if (closing.signal.aborted) return closed;
    last = { failure, at: performance.now() };
    return failure;
  }

  return {
    current,
    failureWithin,
    get() {
      if (closing.signal.aborted) return Promise.resolve(closed);
      const usable = current();
      if (usable !== undefined) return Promise.resolve(usable);
      finding ??= find().finally(() => {
        finding = undefined;
      });
      return finding;
    },
    async close() {
      closing.abort();
      await finding;
    },
  };
}

/** Publishes on the connection, or fails everything if there is none before the deadline. */
export async function publishOn<Link extends object, Failure extends PublishFailed>(
  { current, get }: Pick<Keeper<Link, Failure>, "current" | "get">,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
  to: { readonly label: string; readonly publish: (link: Link) => Promise<PublishResult[]> },
): Promise<PublishResult[]> {
  // Always awaited, so that an abort right after the call comes before anything is sent.
  const link = await (current() ?? orAborted(get(), scope));
  if (link !== undefined && !("status" in link)) return await to.publish(link);
  if (scope.ending === "closed") return batch.map(() => ABORTED);
  const tooSlow = `no connection to ${to.label} before the publish deadline`;
  return failBatch(batch, link ?? failed("connection", "CONNECT_TIMEOUT", tooSlow));
}
