/** `rowpost demo`: the last line, what it stands on, and what is left behind. */
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { afterEach, describe, expect, test } from "vitest";
import { createTestDatabase, describeWithService, testService } from "../../rowpost/test/services.ts";
import { rowpost, startRowpost } from "./command.ts";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function lastLine(stdout: string): string | undefined {
  return stdout.trimEnd().split("\n").at(-1);
}

/** Drops a database that a command made, by a connection to another one of the same server. */
async function dropDatabase(neighborUrl: string, name: string): Promise<void> {
  const database = neighborUrl.startsWith("postgres") ? postgres({ url: neighborUrl }) : mysql({ url: neighborUrl });
  const session = await database.connect({ purpose: "tool" });
  await session.run({ name: "testDrop", text: `DROP DATABASE IF EXISTS ${name}`, params: [] });
  await session.close();
  await database.close();
}

/** One in ten is rolled back; how many come again is chance. */
function verdict(orders: number): RegExp {
  const committed = orders * 0.9;
  const counts = `committed=${committed} rolled_back=${orders - committed} sent=${committed} consumed=${committed}`;
  return new RegExp(`^${counts} duplicates=\\d+ lost=0 phantom=0$`);
}

describe("with nothing installed", () => {
  test("ends by itself with the verdict, and leaves no file", async () => {
    const { code, stdout, stderr } = await rowpost(["demo", "--orders", "200", "--once"]);
    expect(stderr).toBe("");
    expect(lastLine(stdout)).toMatch(verdict(200));
    expect(code).toBe(0);
    const folder = /orders in sqlite:(.*)\/demo\.db/.exec(stdout)?.[1];
    expect(folder).toBeDefined();
    expect(existsSync(folder ?? "")).toBe(false);
    // Nothing stays that somebody could open.
    expect(stdout).not.toContain("console at");
  });

  test("shows its orders in the console until Ctrl-C, and then sends what is there", async () => {
    // Whether it is ours now or was another's: the demo has to take another port.
    const taken = createServer();
    await new Promise<void>((resolve) => {
      taken.once("error", () => resolve()).listen(7070, "127.0.0.1", resolve);
    });
    closers.push(() => taken.close());
    const demo = startRowpost(["demo", "--orders", "200"]);
    closers.push(() => demo.child.kill("SIGKILL"));
    await demo.printed(/consumed 180\b/);
    const [, url = "", port, token] = /console at (http:\/\/127\.0\.0\.1:(\d+)\/)#t=(\S+)/.exec(demo.stdout()) ?? [];
    expect(port).not.toBe("7070");
    const opened = await fetch(`${url}api/v1/session/exchange`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    });
    const headers = { cookie: opened.headers.getSetCookie()[0]?.split(";")[0] ?? "" };
    const listed = await fetch(`${url}api/v1/s/main/messages?limit=200`, { headers });
    const { items } = (await listed.json()) as { readonly items: readonly { readonly type: string }[] };
    expect(items).toHaveLength(180);
    expect(new Set(items.map(({ type }) => type))).toEqual(new Set(["demo.order.created"]));
    const metrics = await (await fetch(`${url}metrics`)).text();
    expect(metrics).toMatch(/^rowpost_published_total\{.*\} [1-9]/m);
    demo.child.kill("SIGINT");
    const { code, stdout } = await demo.finished;
    expect(lastLine(stdout)).toMatch(
      /^committed=(\d+) rolled_back=\d+ sent=\1 consumed=\1 duplicates=\d+ lost=0 phantom=0$/,
    );
    expect(code).toBe(0);
  });
});

describeWithService(["mariadb", "postgres"], "the demo", (service) => {
  test("makes its database, and can be run again on it", async () => {
    const neighbor = await createTestDatabase(service.name);
    closers.push(() => neighbor.drop());
    // Dropped here so that the demo has to make it; dropped again at the end.
    const made = await createTestDatabase(service.name);
    await made.drop();
    closers.push(() => dropDatabase(neighbor.url, made.name));
    for (const orders of ["60", "40"]) {
      const { code, stdout, stderr } = await rowpost(["demo", "--orders", orders, "--once", "--database", made.url]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(lastLine(stdout)).toMatch(verdict(Number(orders)));
    }
  });
});

describeWithService(["rocketmq", "kafka", "rabbitmq", "redis", "mosquitto"], "the demo", (broker) => {
  test("with a real consumer", async () => {
    const database = await createTestDatabase(testService("mariadb").present ? "mariadb" : "postgres");
    closers.push(() => database.drop());
    const { code, stdout, stderr } = await rowpost([
      ...["demo", "--orders", "100", "--once", "--database", database.url, "--broker", broker.address],
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(lastLine(stdout)).toMatch(verdict(100));
  }, 60_000);
});

describeWithService("nats", "the demo", (nats) => {
  test("with a real JetStream consumer, on a stream that is gone afterwards", async () => {
    const database = await createTestDatabase(testService("postgres").present ? "postgres" : "mariadb");
    closers.push(() => database.drop());
    const suffix = `${process.pid}_${Date.now().toString(36)}`;
    const broker = `${nats.address}?prefix=rowpost_test_${suffix}.&stream=ROWPOST_TEST_${suffix}`;
    const { code, stdout, stderr } = await rowpost([
      ...["demo", "--orders", "100", "--once", "--database", database.url, "--broker", broker],
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(lastLine(stdout)).toMatch(verdict(100));
    const again = await rowpost(["relay", "--once", "--database", database.url, "--broker", broker]);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining(`has no stream ROWPOST_TEST_${suffix}`) });
  }, 60_000);
});
