/**
 * Meaning of the state column's values. Proposed from words and comments, and confirmed by the
 * user: a mistake would publish sent messages, or never the waiting ones.
 */
import { MESSAGE_STATES, type MessageState, STATE_WORDS_ZH } from "rowpost/admin";
import type { Say } from "../language.ts";
import type { Column, StateValue } from "./catalog.ts";

export type StateValues = Readonly<Record<MessageState, string | number>>;

const MEANINGS: readonly (readonly [state: MessageState, word: RegExp])[] = [
  ["failed", /失败|异常|死信|fail|error|dead|abandon/i],
  ["consumed", /已?消费|已确认|consumed|confirmed|acked|^read$/i],
  ["suspended", /挂起|暂停|冻结|suspend|paused|held|hold|frozen/i],
  ["sending", /发送中|处理中|投递中|sending|processing|inflight|in_progress|busy|locked|publishing/i],
  ["pending", /待|未发送|未处理|新建|初始|pending|waiting|wait|new|init|ready|created|unsent|todo/i],
  ["sent", /已发送|已投递|成功|完成|sent|success|done|published|finished|complete/i],
];

function meaningOf(word: string): MessageState | undefined {
  return MEANINGS.find(([, words]) => words.test(word))?.[0];
}

/** Proposed meaning of each value, by its word or the comment (`0-待发送，1-发送中`). */
export function proposedStates(
  values: readonly StateValue[],
  comment: string,
): ReadonlyMap<string | number, MessageState | undefined> {
  const said = new Map<string, string>();
  for (const [, value = "", word = ""] of comment.matchAll(/(\w+)\s*[-—:：=、.]\s*([^\s,，;；、）)|/]+)/g))
    said.set(value, word);
  return new Map(
    values.map(({ value }) => [value, meaningOf(said.get(String(value)) ?? (typeof value === "string" ? value : ""))]),
  );
}

export function stateProblems(
  given: Partial<Record<MessageState, string | number>>,
  values: readonly StateValue[],
  say: Say,
): string[] {
  const named = new Set(Object.values(given).map(String));
  const unnamed = values.filter(({ value }) => !named.has(String(value)));
  const rows = unnamed
    .map(({ count, value }) => {
      const where = count === 0 ? say("in older rows", "在较旧的行里") : say(`${count} rows`, `${count} 行`);
      return `${String(value)} (${where})`;
    })
    .join(", ");
  return [
    ...(given.pending === undefined
      ? [
          say(
            "say which value waits to be sent: --state pending=VALUE",
            "请说明哪个值表示待发送：--state pending=VALUE",
          ),
        ]
      : []),
    ...(unnamed.length > 0
      ? [
          say(
            `say what these values mean, or change their rows first: ${rows}`,
            `请说明这些值的含义，或先改这些行：${rows}`,
          ),
        ]
      : []),
  ];
}

/** Values for states missing in the table, of the same kind as the others. */
export function completeStates(
  given: Partial<Record<MessageState, string | number>>,
  values: readonly StateValue[],
): { readonly states: StateValues; readonly added: readonly MessageState[] } {
  const taken = new Set(
    [...Object.values(given), ...values.map(({ value }) => value)].map((value) => String(value).toLowerCase()),
  );
  const isNumeric = Object.values(given).every((value) => typeof value === "number");
  const isChinese = Object.values(given).some((value) => /[\u4e00-\u9fff]/.test(String(value)));
  let next = 0;
  const fresh = (state: MessageState): string | number => {
    if (isNumeric) {
      while (taken.has(String(next))) next += 1;
      taken.add(String(next));
      return next;
    }
    const word = isChinese ? STATE_WORDS_ZH[state] : state;
    const free = taken.has(word.toLowerCase()) ? `rowpost_${state}` : word;
    taken.add(free.toLowerCase());
    return free;
  };
  const added = MESSAGE_STATES.filter((state) => given[state] === undefined);
  const states = Object.fromEntries(MESSAGE_STATES.map((state) => [state, given[state] ?? fresh(state)]));
  return { states: states as StateValues, added };
}

export function unfitStates({ length, type }: Column, states: StateValues): string[] {
  const values = Object.values(states);
  const isEnum = /^enum\(/i.test(type);
  return values
    .filter((value) => (isEnum ? !type.includes(`'${value}'`) : length !== undefined && String(value).length > length))
    .map(String);
}
