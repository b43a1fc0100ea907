/** Explains how a server would find a relay's messages. EXPLAIN runs no statement. */
import type { PlanStep, StatementPlan } from "../../admin/doctor/store.ts";
import { describeError } from "../../runtime/errors.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { Session } from "../database.ts";
import type { StoreParts } from "./relay-store.ts";
import type { Row } from "./rows.ts";
import type { DialectStatements } from "./statements.ts";

export interface PlanReader {
  /** Words before the statement; never ones that run it. */
  readonly explain: string;
  /** Steps of the plan that read this table. */
  readonly steps: (rows: readonly Row[], table: string) => readonly PlanStep[];
}

export async function readPlans(parts: StoreParts & { readonly plans: PlanReader }): Promise<StatementPlan[]> {
  const { layout, statements } = parts;
  const session = await parts.connect({ purpose: "tool", clock: layout.clock });
  try {
    const found: StatementPlan[] = [];
    for (const [name, statement] of Object.entries(asked(statements))) {
      found.push(await planOf(parts, session, { name, statement }));
    }
    return found;
  } finally {
    await session.close();
  }
}

async function planOf(
  { layout, plans }: { readonly layout: StoreParts["layout"]; readonly plans: PlanReader },
  session: Session,
  { name, statement }: { readonly name: string; readonly statement: Statement },
): Promise<StatementPlan> {
  try {
    const text = `${plans.explain} ${statement.text}`;
    const { rows } = await session.run({ name: "explain", text, params: statement.params });
    return { statement: name, steps: plans.steps(rows, layout.table), problem: undefined };
  } catch (error) {
    return { statement: name, steps: [], problem: describeError(error) };
  }
}

/** A relay's statements that find messages, as it sends them. */
function asked({ facts, housekeeping, relay }: DialectStatements): Readonly<Record<string, Statement>> {
  const row = { id: "100", shard: 0, deliveryCount: 0, lockVersion: "0", identityHash: "0" };
  const fence = { owner: "nobody", epochs: Array.from({ length: facts.shardCount }, () => "1") };
  const outcome = { toState: "sent", messageId: "1", retryDelta: 0, deliveryDelta: 0, nextRetryInMs: null } as const;
  const outcomes = [{ ...row, ...outcome, failReason: null }];
  const limits = { afterId: "0", immediateLimit: 500, dueLimit: 125 };
  return {
    scan: relay.scan({ shards: undefined, bodyLimit: 65_536, ...limits }),
    claim: relay.claim({ fence, rows: [row] }),
    settle: relay.settleSent({ fence, outcomes, elapsedMs: 0, from: "sending" }),
    "look for what nobody watches": housekeeping.listSending({ shards: undefined, limit: 500 }),
    "look for what falls due": housekeeping.listTimed(500),
    count: housekeeping.gauges(10_000),
  };
}
