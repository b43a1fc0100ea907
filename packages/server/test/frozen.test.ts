/** `rowpost relay` whose database freezes: connections are accepted, and nothing is answered. */
import { createTcpProxy } from "rowpost/testing";
import { expect, onTestFinished, test } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { rowpost, startRowpost } from "./command.ts";

/** Three and a half seconds of limits; what they do not end takes minutes. */
const TIMEOUT = { timeout: 25_000 };

describeWithService(["mariadb", "postgres"], "a frozen database", ({ name }) => {
  test.each([
    ["a daemon", [], "relay runs"],
    ["--once", ["--once"], "acquired shards"],
  ])("SIGTERM ends %s while it is still frozen, with 1", TIMEOUT, async (_what, flags, line) => {
    const database = await createTestDatabase(name);
    onTestFinished(() => database.drop());
    expect(await rowpost(["migrate", "--database", database.url])).toMatchObject({ code: 0 });
    const url = new URL(database.url);
    const proxy = await createTcpProxy({ target: { host: url.hostname, port: Number(url.port) } });
    onTestFinished(() => proxy.close());
    url.host = `127.0.0.1:${proxy.port}`;
    const relay = startRowpost([
      ...["relay", "--database", url.href, "--broker", "memory:", "--drain-timeout", "500ms", ...flags],
    ]);
    onTestFinished(() => void relay.child.kill("SIGKILL"));
    await relay.printed(line);
    proxy.mute();
    relay.child.kill("SIGTERM");
    const { code, stderr } = await relay.finished;
    expect(code).toBe(1);
    expect(stderr.trimEnd().split("\n").at(-1)).toContain('"drained":false');
  });
});
