/**
 * Calls that wait for each other anyway share a transaction: appends to one partition come one
 * after the other, so what has come meanwhile goes together, with one commit for all. Nobody waits
 * for others to come.
 */

export interface Gather<Call> {
  /** Resolves when the call's part is committed; rejects when it is not, with nothing written. */
  run(call: Call): Promise<void>;
}

interface Waiting<Call> {
  readonly call: Call;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export interface GatherOptions<Call> {
  /** One transaction with all of them, in their order: all are committed, or none. */
  readonly commit: (calls: readonly Call[]) => Promise<void>;
  /** Whether it is sure that a failed transaction has left nothing; else all hear of its error. */
  readonly leftNothing: (error: unknown) => boolean;
  /** How much of `most` a call takes. */
  readonly sizeOf: (call: Call) => number;
  /** Upper bound of a transaction, unless one call alone is larger. */
  readonly most: number;
}

/** A transaction that fails is repeated call by call, so that one bad call fails alone. */
export function createGather<Call>({ commit, leftNothing, sizeOf, most }: GatherOptions<Call>): Gather<Call> {
  const waiting: Waiting<Call>[] = [];
  let running = false;

  function take(): Waiting<Call>[] {
    let size = 0;
    const end = waiting.findIndex(({ call }, index) => {
      size += sizeOf(call);
      return index > 0 && size > most;
    });
    return waiting.splice(0, end === -1 ? waiting.length : end);
  }

  async function commitAlone({ call, resolve, reject }: Waiting<Call>): Promise<void> {
    await commit([call]).then(resolve, reject);
  }

  async function runAll(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      const taken = take();
      if (taken.length > 1) {
        try {
          await commit(taken.map(({ call }) => call));
          for (const { resolve } of taken) resolve();
          continue;
        } catch (error) {
          if (!leftNothing(error)) {
            for (const { reject } of taken) reject(error);
            continue;
          }
        }
      }
      for (const each of taken) await commitAlone(each);
    }
    running = false;
  }

  return {
    async run(call) {
      const done = new Promise<void>((resolve, reject) => {
        waiting.push({ call, resolve, reject });
      });
      if (!running) void runAll();
      await done;
    },
  };
}
