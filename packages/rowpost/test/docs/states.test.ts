/**
 * docs/states.md is written from the table of transitions. `npx vitest run states -u` writes it
 * anew.
 */
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { MESSAGE_STATES, STATE_WORDS_ZH, TRANSITIONS } from "../../src/message/states.ts";

const FILE = fileURLToPath(new URL("../../../../docs/states.md", import.meta.url));

function page(): string {
  const states = MESSAGE_STATES.map((state, number) => `| ${number} | \`${state}\` | ${STATE_WORDS_ZH[state]} |`);
  const rows = TRANSITIONS.map(
    ({ name, from, to, by, writes, withoutSendingMark }) =>
      `| ${name} | ${from.join(", ")} | ${to} | ${by.join(", ")} | ${writes}${withoutSendingMark === true ? ' (only with `sendingMark: "off"`)' : ""} |`,
  );
  return [
    "# States and transitions 状态与流转",
    "",
    "Written from `TRANSITIONS` in `packages/rowpost/src/message/states.ts`. What is not in the table",
    "does not exist: every statement that changes a state names its allowed-from states, and a row in",
    "another state is reported as a conflict, not changed.",
    "",
    "| number | state | 中文 |",
    "| --- | --- | --- |",
    ...states,
    "",
    "| transition | from | to | by | writes, besides state, lock_version + 1 and gmt_modified |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

it("docs/states.md says what the code does", async () => {
  await expect(page()).toMatchFileSnapshot(FILE);
});

it("each transition has a name of its own", () => {
  expect(new Set(TRANSITIONS.map(({ name }) => name)).size).toBe(TRANSITIONS.length);
});
