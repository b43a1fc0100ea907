import { connect as connectTcp } from "node:net";
import { expect, test } from "vitest";
import { probe, services } from "../../../tools/services/probe.js";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";
import { createTestDatabase, describeWithService } from "./services.ts";

describeWithService(["mariadb", "mysql9", "mysql8"], "a test database", (service) => {
  test("is empty, takes a login and is gone after drop, also under an open transaction", async () => {
    const { createConnection } = await import("mysql2/promise");
    expect(await service.available()).toBe(true);
    const database = await createTestDatabase(service.name);
    const uri = database.url.replace(/^mariadb:/, "mysql:");
    const holder = await createConnection(uri);
    holder.on("error", () => {});
    await holder.query("CREATE TABLE t (id INT PRIMARY KEY)");
    await holder.query("START TRANSACTION");
    await holder.query("INSERT INTO t VALUES (1)");
    await database.drop();
    await database.drop();
    await expect(createConnection(uri)).rejects.toMatchObject({ errno: 1049 });
    holder.destroy();
  });
});

describeWithService("postgres", "a test database", (service) => {
  test("is empty, takes a login and is gone after drop, also under an open transaction", async () => {
    const { default: pg } = await import("pg");
    expect(await service.available()).toBe(true);
    const database = await createTestDatabase("postgres");
    const holder = new pg.Client(database.url);
    holder.on("error", () => {});
    await holder.connect();
    await holder.query("BEGIN");
    await holder.query("CREATE TABLE t (id INT PRIMARY KEY)");
    await database.drop();
    await database.drop();
    await expect(new pg.Client(database.url).connect()).rejects.toMatchObject({ code: "3D000" });
  });
});

describeWithService(Object.keys(services), "the server", (service) => {
  test("answers in its own protocol", async () => {
    expect(await service.available()).toBe(true);
  });
});

describeWithService("mariadb", "a server of another product", (service) => {
  test("counts as absent", async () => {
    const report = await probe("mysql9", service.address);
    expect(report).toMatchObject({ present: false, detail: expect.stringContaining("MariaDB") });
  });
});

test("where nothing listens, the reason says so", async () => {
  const report = await probe("rocketmq", "rocketmq://127.0.0.1:1");
  expect(report).toMatchObject({ present: false, detail: "connect ECONNREFUSED 127.0.0.1:1" });
});

test("an embedded PostgreSQL starts, takes logins, and leaves nothing", async () => {
  const embedded = await startEmbeddedPostgres();
  try {
    expect(await probe("postgres", embedded.address)).toMatchObject({ present: true });
  } finally {
    await embedded.stop();
  }
  const { port } = new URL(embedded.address);
  const refused = await new Promise((resolve) => {
    connectTcp(Number(port), "127.0.0.1")
      .once("connect", () => resolve("connected"))
      .once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
  });
  expect(refused).toBe("ECONNREFUSED");
});
