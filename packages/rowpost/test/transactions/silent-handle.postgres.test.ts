/** postgres.js answers no statement that comes behind the end of its transaction. */
import postgresJs from "postgres";
import { expect, it } from "vitest";
import { postgres } from "../../src/databases/postgres/index.ts";
import { callIn } from "../../src/databases/sql/enqueue-call.ts";
import { DatabaseUnavailableError } from "../../src/index.ts";
import { createTestDatabase, describeWithService } from "../services.ts";

describeWithService("postgres", "a handle that does not answer", ({ name }) => {
  it("is told from one that does, and the call is refused with the advice to await it", async () => {
    const made = await createTestDatabase(name);
    const database = postgres({ url: made.url });
    const sql = postgresJs(made.url, { max: 1 });
    const ask = () => ({ name: "ask", text: "SELECT $1::integer AS one", params: [1] });
    let answer: Promise<unknown> = Promise.resolve();
    await sql.begin(async (tx) => {
      const send = callIn({ statements: { enqueue: {} }, silentMs: 300 }, database.executor(tx), false);
      await send(ask);
      expect((await send(ask)).rows).toEqual([{ one: 1 }]);
      // Nobody awaits it: its second statement is handed over while the COMMIT is under way.
      answer = send(ask).then(() => send(ask));
      answer.catch(() => undefined);
    });
    const late = await answer.catch((error: unknown) => error);
    expect(late).toBeInstanceOf(DatabaseUnavailableError);
    expect(String(late)).toContain("await");
    await sql.end({ timeout: 1 });
    await database.close();
    await made.drop();
  });
});
