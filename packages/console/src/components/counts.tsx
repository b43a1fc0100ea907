import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { type Count, formatCount } from "../format.ts";
import { StateMark } from "./state.tsx";

type StateCounts = AnswerOf<"overview">["states"];

export function CountOf({ count }: { readonly count: Count | undefined }) {
  if (count === undefined) return <span class="quiet">?</span>;
  return <span class={count.value === 0 && count.relation === "eq" ? "num quiet" : "num"}>{formatCount(count)}</span>;
}

export function StateCount({
  source,
  state,
  states,
  topic,
}: {
  readonly source: string;
  readonly states: StateCounts;
  readonly state: StateCounts[number]["state"];
  readonly topic?: string;
}) {
  const count = states.find((each) => each.state === state)?.count ?? { value: 0, relation: "eq" as const };
  if (count.value === 0 && count.relation === "eq") return <CountOf count={count} />;
  return (
    <a href={hrefOf(source, "messages", { query: { topic, state } })} class={`count-${state}`}>
      <CountOf count={count} />
    </a>
  );
}

export function StateLine({ source, states }: { readonly source: string; readonly states: StateCounts }) {
  return (
    <dl class="figures">
      {states.map(({ count, state }) => (
        <div key={state}>
          <dt>
            <StateMark state={state} />
          </dt>
          <dd>
            <a href={hrefOf(source, "messages", { query: { state } })}>{formatCount(count)}</a>
          </dd>
        </div>
      ))}
    </dl>
  );
}
