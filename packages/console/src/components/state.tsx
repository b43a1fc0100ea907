/** A state by shape, word and color together. */
import type { AnswerOf } from "rowpost-server/api";
import { words } from "../language/language.ts";

export type State = AnswerOf<"message">["message"]["state"];

const SHAPES: Readonly<Record<State, string>> = {
  pending: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Z",
  sending: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm0 0v11M8 5h3M8 8h5M8 11h3",
  sent: "m3 8.5 3.5 3.5L13 4.5",
  consumed: "m1.5 8.5 3 3 6-7M7 11l.5.5 7-7.5",
  failed: "m4 4 8 8m0-8-8 8",
  suspended: "M5.5 3.5v9m5-9v9",
  unknown: "M5.5 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.6 8 9 8 10m0 2.4v.2",
};

export function StateMark({ state }: { readonly state: State }) {
  return (
    <span class={`state state-${state}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={SHAPES[state]} />
      </svg>
      {words.value.states[state]}
    </span>
  );
}
