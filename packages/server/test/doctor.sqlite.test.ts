/** `rowpost doctor` on a SQLite file: exit codes, both forms of output, and no secret. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { rowpostHere, temporaryFile } from "./command.ts";

let place: Awaited<ReturnType<typeof temporaryFile>>;

beforeEach(async () => {
  place = await temporaryFile();
});
afterEach(() => place.remove());

const doctor = (...args: string[]): ReturnType<typeof rowpostHere> =>
  rowpostHere(["doctor", "--database", place.url, ...args]);

test("1: tables that are missing, with the command that makes them", async () => {
  await rowpostHere(["migrate", "--database", place.url]);
  const { code, stdout } = await doctor("--table", "other");
  expect(code).toBe(1);
  expect(stdout).toMatch(/^error D102: .*table other is missing.*\n {2}why: .+\n {2}mend: .+\n\n1 error on sqlite /);
});

test("3: warnings only, as text and as JSON", async () => {
  await rowpostHere(["migrate", "--database", place.url]);
  const text = await doctor();
  expect(text.code).toBe(3);
  expect(text.stdout).toMatch(/^warning D401: no relay is running\n/);
  expect(text.stdout).toMatch(/\n1 warning on sqlite \d/);
  const json = await doctor("--json", "--broker", "memory:");
  expect(json.code).toBe(3);
  const id = { id: "D401", severity: "warning", what: "no relay is running" };
  expect(JSON.parse(json.stdout)).toMatchObject({ server: expect.stringMatching(/^sqlite /), found: [id] });
});

test("in Chinese where the help is; the JSON for programs is not", async () => {
  await rowpostHere(["migrate", "--database", place.url]);
  const args = ["doctor", "--database", place.url, "--broker", "amqp://shop:very-secret@127.0.0.1:9"];
  const { code, stdout } = await rowpostHere(args, { LANG: "zh_CN.UTF-8" });
  expect(code).toBe(1);
  const [broker = "", relay, last = ""] = stdout.split("\n\n");
  expect(broker).toMatch(
    /^错误 D501：中间件 amqp:\/\/127\.0\.0\.1:9 不可用：.*\n {2}原因：这台机器发不出消息给它\n {2}处理：/,
  );
  expect(relay).toBe(
    "警告 D401：没有 relay 在运行\n  原因：这张表的消息都发不出去\n  处理：启动一个：rowpost relay --database URL --broker URL",
  );
  expect(last).toMatch(/^1 个错误，1 个警告（sqlite \S+）\n$/);
  expect(stdout).not.toContain("very-secret");
  const english = await rowpostHere(args, { LANG: "zh_CN.UTF-8", ROWPOST_LANG: "en" });
  expect(english.stdout).toMatch(/^error D501: /);
  const json = await rowpostHere([...args, "--json"], { ROWPOST_LANG: "zh" });
  expect(JSON.parse(json.stdout)).toMatchObject({ found: [{ id: "D501" }, { what: "no relay is running" }] });
});

test("a broker that cannot be used is an error, and its password is not printed", async () => {
  await rowpostHere(["migrate", "--database", place.url]);
  const { code, stdout, stderr } = await doctor("--broker", "amqp://shop:very-secret@127.0.0.1:9");
  expect(code).toBe(1);
  expect(stdout).toMatch(/^error D501: the broker amqp:\/\/127\.0\.0\.1:9 cannot be used: /);
  expect(stdout + stderr).not.toContain("very-secret");
});

test("2: a broker that nobody knows", async () => {
  await rowpostHere(["migrate", "--database", place.url]);
  expect((await doctor("--broker", "carrier-pigeon://x")).code).toBe(2);
});
