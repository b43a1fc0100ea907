/**
 * Settings of a user's connection under which the database would store something else than it was
 * given: refused with every driver and ORM, and nothing is written (rule: exact-text).
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ConfigurationError, createOutbox, type NewMessage } from "../../src/index.ts";
import type { CaseOptions } from "./handle-cases.ts";
import type { Handles } from "./handles.ts";

let serial = 0;

/** A key that no other test has. */
function keyOf(what: string): string {
  serial += 1;
  return `${what}-${serial}`;
}

/** Where a backslash escapes nothing it ends its value and its row, and adds a row of its own. */
function forging(key: string): NewMessage {
  const [word, topic] = [hex("forged"), hex("payments")];
  const rest = `NULL, NULL, NULL, ${word}, ${word}, NOW(3), NOW(3)`;
  const body = `x', ${rest}), (0, ${word}, ${word}, ${topic}, ${word}, ${rest}) -- `;
  return { type: "order.created", key, topic: "orders", contentType: "text/plain", body };
}

/** A text without quotes. */
function hex(text: string): string {
  return `0x${Buffer.from(text).toString("hex")}`;
}

/** Defines the tests of one kind of handle on MySQL and MariaDB. */
export function defineSettingsCases(name: string, options: Pick<CaseOptions, "place" | "open">): void {
  describe(`${name}, on a connection with settings of its own`, () => {
    let handles: Handles;
    beforeAll(async () => {
      handles = await options.open();
    });
    afterAll(async () => {
      await handles?.close();
    });

    /** What each enqueue answers after `settings`, which are taken back at the end. */
    async function enqueueUnder(settings: string, undo: string, messages: readonly NewMessage[]): Promise<unknown[]> {
      const { database } = options.place();
      const outbox = createOutbox({ database });
      const answers: unknown[] = [];
      await handles.transaction(async (tx) => {
        const set = (text: string) => database.executor(tx).run({ name: "set", text, params: [] });
        // Prepared before the settings, and used under them.
        await outbox.enqueue(tx, { type: "order.created", key: keyOf("before"), topic: "orders", body: "" });
        await set(settings);
        try {
          const each = messages.map((message) => [message]);
          // One message, and more than are ever prepared at once.
          for (const call of [...each, [...messages, ...Array.from({ length: 6 }, () => plain())]]) {
            for (const onDuplicate of ["throw", "ignore"] as const) {
              answers.push(await outbox.enqueue(tx, call, { onDuplicate }).catch((error: unknown) => error));
            }
          }
        } finally {
          await set(undo);
        }
      });
      return answers;
    }

    const plain = (): NewMessage => ({
      type: "order.created",
      key: keyOf("plain"),
      topic: "orders",
      body: "",
    });

    for (const charset of ["utf8mb3", "latin1", "gbk"]) {
      test(`SET NAMES ${charset}: refused`, async () => {
        const key = keyOf("张𠮷");
        const sent = { type: "order.created", key, topic: "orders", headers: { source: "𠮷" }, body: "张𠮷" };
        const answers = await enqueueUnder(`SET NAMES ${charset}`, "SET NAMES utf8mb4", [sent]);
        expect(answers).toHaveLength(4);
        for (const answer of answers) {
          expect(answer).toBeInstanceOf(ConfigurationError);
          expect(answer).toMatchObject({ message: expect.stringContaining("utf8mb4") });
        }
      });
    }

    test("NO_BACKSLASH_ESCAPES: refused, and no body becomes a message of its own", async () => {
      const key = keyOf("forging");
      const answers = await enqueueUnder(
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
        "SET SESSION sql_mode = @@global.sql_mode",
        [forging(key)],
      );
      expect(answers).toHaveLength(4);
      for (const answer of answers) {
        expect(answer).toBeInstanceOf(ConfigurationError);
        expect(answer).toMatchObject({ message: expect.stringContaining("NO_BACKSLASH_ESCAPES") });
      }
      const keys = await options.place().onlooker.keys();
      expect(keys).not.toContain(key);
      expect(keys).not.toContain("forged");
    });
  });
}
