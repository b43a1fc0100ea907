/** A bulk operation whose console is killed goes on in another one, and its sums are right. */
import { writeFile } from "node:fs/promises";
import { createOutbox, migrate } from "rowpost";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { expect, test } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { randomSecret, sha256 } from "../src/access/secrets.ts";
import { type Running, startRowpost, temporaryFile } from "./command.ts";

const MESSAGES = 5_000;

interface Operation {
  readonly state: string;
  readonly total: { readonly value: number; readonly relation: string };
  readonly changed: number;
  readonly conflicts: number;
  readonly vanished: number;
}

describeWithService(["mariadb", "postgres"], "a bulk operation", ({ name }) => {
  test("survives SIGKILL of its console: each message is changed once, and the sums add up", async () => {
    const place = await createTestDatabase(name);
    const files = await temporaryFile();
    const database = name === "postgres" ? postgres({ url: place.url }) : mysql({ url: place.url });
    const session = await database.connect({ purpose: "tool" });
    const sql = async (text: string) => (await session.run({ name: "test", text, params: [] })).rows;
    const consoles: Running[] = [];
    const token = `rp_${randomSecret()}`;
    const access = `${files.file}.json`;
    await writeFile(access, JSON.stringify({ tokens: [{ name: "ann", role: "operator", hash: sha256(token) }] }));

    /** Starts a console, and asks it. */
    async function start(): Promise<(method: string, path: string, body?: object) => Promise<Record<string, unknown>>> {
      const running = startRowpost(["console", "--database", place.url, "--listen", "0", "--access", access]);
      consoles.push(running);
      await running.printed(/console at \S+/);
      const [, url] = /console at (\S+)/.exec(running.stdout()) ?? [];
      return async (method, path, body) => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
        const answer = await fetch(`${url}api/v1/s/main${path}`, init);
        expect(answer.status, `${method} ${path}`).toBe(200);
        return (await answer.json()) as Record<string, unknown>;
      };
    }

    try {
      await migrate(database, { layout: database.defaultLayout });
      const outbox = createOutbox({ database });
      for (let from = 0; from < MESSAGES; from += 1_000)
        await outbox.transaction(async (tx) => {
          const keys = Array.from({ length: 1_000 }, (_, index) => String(from + index));
          await outbox.enqueue(
            tx,
            keys.map((key) => ({ type: "order.created", key, topic: "orders", body: {} })),
          );
        });
      await sql("UPDATE local_message SET state = 3, lock_version = 0, fail_reason = 'HTTP_503: away'");
      const ask = await start();
      const { operation: planned } = await ask("POST", "/previews", { kind: "retry", filter: { topic: "orders" } });
      const { id, total } = planned as Operation & { readonly id: string };
      expect(total).toEqual({ value: MESSAGES, relation: "eq" });
      // Since the preview: seven have been changed by somebody, five are gone.
      await sql(
        "UPDATE local_message SET lock_version = lock_version + 1, state = 5 WHERE message_key IN ('1', '999', '2000', '3001', '4000', '4001', '4999')",
      );
      await sql("DELETE FROM local_message WHERE message_key IN ('0', '700', '2500', '4500', '4998')");
      await ask("POST", "/operations", { preview: id, reason: "the broker is back", rate: 5_000 });
      const read = async (from: typeof ask) => (await from("GET", `/operations/${id}`))["operation"] as Operation;
      await expect.poll(async () => (await read(ask)).changed, { timeout: 20_000, interval: 20 }).toBeGreaterThan(999);
      consoles[0]?.child.kill("SIGKILL");
      await consoles[0]?.finished;

      const second = await start();
      const halfway = await read(second);
      expect([halfway.state, halfway.changed < MESSAGES - 12]).toEqual(["running", true]);
      await expect.poll(async () => (await read(second)).state, { timeout: 40_000 }).toBe("done");
      expect(await read(second)).toMatchObject({ total, changed: MESSAGES - 12, conflicts: 7, vanished: 5 });
      expect(
        await sql(
          "SELECT state, lock_version, COUNT(*) AS n FROM local_message GROUP BY state, lock_version ORDER BY state",
        ),
      ).toEqual([
        expect.objectContaining({ state: 0, n: expect.toSatisfy((n) => Number(n) === MESSAGES - 12) }),
        expect.objectContaining({ state: 5, n: expect.toSatisfy((n) => Number(n) === 7) }),
      ]);
      // What the audit says of each batch is what was changed.
      const written = await sql("SELECT SUM(changed) AS n FROM local_message_audit WHERE action = 'retry'");
      expect(Number(written[0]?.["n"])).toBe(MESSAGES - 12);
    } finally {
      for (const { child, finished } of consoles) {
        child.kill("SIGKILL");
        await finished;
      }
      await session.close();
      await database.close();
      await place.drop();
      await files.remove();
    }
  });
});
