/** A command that finds no tables says so, and ends: it leaves no connection open. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, describeWithService, type TestDatabase } from "../../rowpost/test/services.ts";
import { rowpost } from "./command.ts";

describeWithService(["mariadb", "mysql9", "postgres"], "without tables", ({ name: service }) => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await createTestDatabase(service);
  });
  afterEach(() => database.drop());

  test("a command says what to run, and ends", async () => {
    const { code, stderr } = await rowpost(["status", "--database", database.url]);
    expect(stderr).toContain("Run: rowpost migrate");
    expect(code).toBe(1);
  });
});
