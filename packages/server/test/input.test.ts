/**
 * Wrong input: exit code 2, nothing on standard output, exactly one line that says what is wrong
 * and what would be right.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rowpost, rowpostHere, temporaryFile } from "./command.ts";

let empty: Awaited<ReturnType<typeof temporaryFile>>;

beforeAll(async () => {
  empty = await temporaryFile();
  expect(await rowpost(["migrate", "--database", empty.url])).toMatchObject({ code: 0 });
});
afterAll(() => empty.remove());

const WRONG: readonly (readonly [line: string, saysThis: string])[] = [
  ["migrate", "--database is missing (or set ROWPOST_DATABASE_URL)"],
  ["migrate --database shop", "--database has no scheme; expected mysql://"],
  [
    "migrate --database mysq://root@127.0.0.1/shop",
    'begins with "mysq:", which is no database known here; expected mysql://',
  ],
  ["status --database mysql://root@127.0.0.1", "names no database: mysql://user@host/DATABASE is expected"],
  ["status --database mysql://root:p@hunter2/wd@127.0.0.1/shop", "names no database: mysql://user@host/DATABASE"],
  ["status --database mysql://root:p@hunter2/wd@127.0.0.1", "names no database: mysql://user@host/DATABASE"],
  ["status --database mysql://root:p@ss/hunter2@127.0.0.1:9", "names no database: mysql://user@host/DATABASE"],
  ["status --database mysql://root:hunter2/x@127.0.0.1/shop", "percent-encoded, or stand in ROWPOST_DATABASE_PASSWORD"],
  ["status --database sqlite:", "names no file; expected sqlite:FILE"],
  ["status --database sqlite::memory:", "would be empty and end with this command"],
  ["migrate --database sqlite:/no/such/folder/app.db", "there is no folder /no/such/folder"],
  ["migrate --database sqlite:/tmp", "is a folder, not a file"],
  ["status --database DB --layout t_message", "is not one of default, t_local_message, message_table"],
  ["status --database DB --table a.b.c", "--table a.b.c has too many dots; expected NAME or SCHEMA.NAME"],
  ["status --database DB --table it's", "is not a usable name"],
  ["status --database DB --states pending", '"pending" is not STATE=VALUE, as in pending=待发送'],
  ["status --database DB --states waiting=1", '"waiting" is not a state: pending, sending,'],
  ["status --database DB --states pending=x,sent=x", "six words that differ by more than case"],
  ["relay --database DB", "--broker is missing (or set ROWPOST_BROKER_URL)"],
  [
    "relay --database DB --broker kafak://127.0.0.1",
    'begins with "kafak:", which is no broker known here; expected memory:',
  ],
  ["relay --database DB --broker memory:x", "takes nothing behind the colon"],
  ["relay --database DB --broker rocketmq://a:8081/b/c", "is more than a namespace; expected rocketmq://"],
  ["relay --database DB --broker rocketmq://key:hunter2@a:8081", "set ROWPOST_ROCKETMQ_ACCESS_KEY"],
  ["relay --database DB --broker rocketmq-classic://k:hunter2@a;b:9876", "set ROWPOST_ROCKETMQ_ACCESS_KEY"],
  ["relay --database DB --broker rocketmq-classic://a:98765;b", '"a:98765" is not host:port, such as 127.0.0.1:9876'],
  ["relay --database DB --broker kafka://127.0.0.1?acks=1", 'unknown setting "acks"; known are tls, ca,'],
  ["relay --database DB --broker kafka://:hunter2@127.0.0.1", "a user is missing; set ROWPOST_KAFKA_USERNAME"],
  ["relay --database DB --broker amqp://me:hunter2@a?tsl=1", 'unknown setting "tsl"; known are exchange, inFlight'],
  ["relay --database DB --broker http://", "expected http://host/path"],
  ["relay --database DB --broker redis://:hunter2@a:6379/x", "must be a database's number, as in /0"],
  ["relay --database DB --broker redis://:hunter2@a?maxlen=9", 'unknown setting "maxlen"; known are prefix'],
  ["relay --database DB --broker nats://me:hunter2@a:4222", "set ROWPOST_NATS_USER and ROWPOST_NATS_PASSWORD"],
  ["relay --database DB --broker mqtt://me:hunter2@a", "set ROWPOST_MQTT_USER and ROWPOST_MQTT_PASSWORD"],
  ["relay --database DB --broker sqs://AKIA:hunter2@eu-central-1", "set AWS_ACCESS_KEY_ID and AWS_SECRET"],
  ["relay --database DB --broker sqs://", "expected sqs://eu-central-1 or sqs://host:9324"],
  ["relay --database DB --broker mqtt://a?qos=2", 'unknown setting "qos"; known are clientId, prefix'],
  ["relay --database DB --broker nats://a:4222/orders", "expected nats://host:4222"],
  ["relay --database DB --broker nats://a:4222?strem=X", 'unknown setting "strem"; known are stream, prefix'],
  ["relay --database DB --route billing", "--route number 1 is not PATTERN=URL, as in --route 'orders.*="],
  ["relay --database DB --route a=memory: --route amqp://u:hunter2@h/?x=1", "--route number 2 is not PATTERN=URL"],
  ["relay --database DB --route a.*=xyz://u:hunter2@h", '--route a.* begins with "xyz:", which is no broker'],
  ["relay --database DB --route a=memory://u:hunter2@h", "--route a memory: takes nothing behind the colon"],
  ["relay --database DB --route a.*=memory: --route a.b=stdout:", 'is never reached: "a.*" stands before it'],
  ["relay --database DB --broker stdout: --route *=memory:", "nothing is left for otherwise"],
  ["relay --database DB --route a=http://u:hunter#2@h/", "a # in a password is %23"],
  [
    "relay --database DB --broker https://h/#shop",
    "#shop means variables such as ROWPOST_HTTP_SECRET_SHOP, and none is",
  ],
  ["relay --database DB --route a=rocketmq://key:hunter2@a:8081", "set ROWPOST_ROCKETMQ_ACCESS_KEY"],
  ["relay --database DB --broker memory: --lease 30", "It must be a duration such as 500ms, 10s"],
  ["relay --database DB --broker memory: --lease 5s --publish-timeout 10s", "leaseMs is 5000 but must be at least"],
  ["relay --database DB --broker memory: --batch-size 0", "It must be a whole number from 1 to 10000."],
  ["relay --database DB --broker memory: --backoff-factor 0.5", "It must be a number of at least 1."],
  ["relay --database DB --broker memory: --keep 1d", "do nothing without --on-sent archive"],
  ["relay --database DB --broker memory: --on-sent forget", "Allowed choices are keep, archive, delete."],
  ["relay --database DB --brokr memory:", "unknown option '--brokr' (Did you mean --broker?) (rowpost relay --help)"],
  [
    "relay --databse=mysql://root:hunter2@127.0.0.1/x",
    "unknown option '--databse=mysql://***@127.0.0.1/x' (rowpost relay --help)",
  ],
  ["relay --databse=mysql://root:p@hunter2/wd@127.0.0.1/x", "unknown option '--databse=mysql://***@127.0.0.1/x'"],
  ["relay --database DB --broker memory://u:p@hunter2@h", "memory: takes nothing behind the colon"],
  ["queue topcis --database DB", "unknown command 'topcis' (Did you mean topics?) (rowpost queue --help)"],
  ["queue create Orders --database DB", "1 to 31 characters of a-z, 0-9 and _"],
  ['queue create a`;x"y --database DB', "1 to 31 characters of a-z, 0-9 and _"],
  ["queue create 订单 --database DB", "1 to 31 characters of a-z, 0-9 and _"],
  [`queue create ${"a".repeat(41)} --database DB`, "1 to 31 characters of a-z, 0-9 and _"],
  [
    "queue create orders --partitions 65 --database DB",
    "It must be a whole number from 1 to 64. (rowpost queue create",
  ],
  ["queue create orders --retention 0 --database DB", "It must be a number of months, or ever."],
  ["queue delete orders --database DB", "--yes is missing"],
  ["queue send orders --database DB", "what is to be sent?"],
  ["queue send orders {} --lines --database DB", "--lines does nothing without --file"],
  ["queue send orders {not-json --database DB", "JSON"],
  ["queue send orders 1 --header x --database DB", "It must be NAME=VALUE."],
  ["queue send or.ders 1 --database DB", "1 to 31 characters of a-z, 0-9 and _"],
  ["queue tail orders --from middle --database DB", "It must be an instant with a zone"],
  ["queue groups Orders --database DB", "1 to 31 characters of a-z, 0-9 and _"],
  ["queue pause orders a'b --database DB", "a consumer group is 1 to 64 characters"],
  ["queue skip orders billing abc --database DB", '"abc" is not an id'],
  ["queue redeliver orders billing --database DB", "which messages? Give --id, or --all"],
  ["queue discard orders billing --id 1 --all --database DB", "which messages? Give --id, or --all"],
  ["queue tail Orders --database DB", "1 to 31 characters of a-z, 0-9 and _"],
  ["statsu --database DB", "unknown command 'statsu' (Did you mean status?) (rowpost --help)"],
  ["list --database DB --state done", '"done" is not a state: pending, sending, sent, failed, consumed, suspended.'],
  ["list --database DB --after yesterday", "It must be an instant with a zone"],
  ["list --database DB --after 2026-11-21T08:00", "It must be an instant with a zone"],
  ["list --database DB --id 12a", '"12a" is not an id'],
  ["show --database DB", "which message? Give its id, or --type and --key"],
  ["show --database DB --type order.created", "which message? Give its id, or --type and --key"],
  ["retry --database DB", "which messages? Without a filter nothing is changed"],
  ["retry --database DB --limit 5", "which messages? Without a filter nothing is changed"],
  ["retry --database DB --state sent", "--state sent: this is possible for failed messages only"],
  ["suspend --database DB", "which messages? Without a filter nothing is changed"],
  ["suspend --database DB --topic orders", "--reason is missing"],
  [
    "suspend --database DB --topic orders --type order.created --reason x",
    "a rule is for one of --topic, --type, --ordering-key",
  ],
  ["suspend --database DB --all-relay --topic orders --reason x", "--all-relay means everything and takes no filter"],
  ["suspend --database DB --all-relay --reason x --until 2020-01-01", "has passed"],
  ["suspend --database DB --all-relay --reason x --until 2099-01-01 --for 2h", "say the same thing; give one of them"],
  ["suspend --database DB --topic a --reason x --for 99999999d", "--for is more than 10 years (3650d) away"],
  ["suspend --database DB --topic a --reason x --for 3651d", "--for is more than 10 years (3650d) away"],
  ["suspend --database DB --topic a --reason x --until 9999-01-01", "--until is more than 10 years (3650d) away"],
  ["resume --database DB", "which messages? Without a filter nothing is changed"],
  ["archive --database DB --reason x", "which messages? Without a filter nothing is changed"],
  ["archive --database DB --topic orders", "--reason is missing"],
  ["archive --database DB --state pending --reason x", "possible for sent and consumed and failed messages only"],
  ["demo --orders 0", "It must be a whole number from 1 to 10000000."],
  ["demo --once --broker memory:", "or leave it out for HTTP"],
];

function expectOneLine(ended: { code: number | null; stdout: string; stderr: string }, saysThis: string): void {
  const { code, stdout, stderr } = ended;
  expect({ code, stdout, lines: stderr.trimEnd().split("\n") }).toEqual({
    code: 2,
    stdout: "",
    lines: [expect.stringContaining(saysThis)],
  });
  expect(stderr).toMatch(/^rowpost: /);
  expect(stderr).not.toContain("hunter2");
}

const withDatabase = (line: string): string[] => line.split(" ").map((part) => (part === "DB" ? empty.url : part));

describe("wrong input", () => {
  test.each(WRONG)("%s", async (line, saysThis) => {
    expectOneLine(await rowpostHere(withDatabase(line)), saysThis);
  });

  test.concurrent.each(WRONG.filter((_, index) => index % 16 === 0))("%s, as a process", async (line, saysThis) => {
    expectOneLine(await rowpost(withDatabase(line)), saysThis);
  });
});

const AWAY: readonly (readonly [line: string, saysThis: string])[] = [
  [
    "status --database sqlite:/tmp/rowpost-there-is-none.db",
    "there is no file /tmp/rowpost-there-is-none.db; `rowpost migrate",
  ],
  [
    "status --database mysql://root:hunter2@127.0.0.1:9/shop",
    "no database answers at mysql://127.0.0.1:9/shop (ECONNREFUSED)",
  ],
  ["status --database mariadb://root:hunter2@127.0.0.1:9/shop", "no database answers at mariadb://127.0.0.1:9/shop"],
  [
    "relay --broker memory: --database postgres://me:hunter2@127.0.0.1:9/shop",
    "no database answers at postgres://127.0.0.1:9/shop",
  ],
  [
    "relay --broker http://me:hunter2@127.0.0.1:9/ --once --database DB",
    "the broker http://127.0.0.1:9/ cannot be used",
  ],
  [
    "relay --broker http://me:topp@hunter2@127.0.0.1:9/x --once --database DB",
    "the broker http://127.0.0.1:9/x cannot be used",
  ],
  ["relay --broker redis://127.0.0.1:9 --once --database DB", "the broker redis://127.0.0.1:9 cannot be used"],
  ["demo --once --broker rocketmq://127.0.0.1:9", "RocketMQ at 127.0.0.1:9 cannot be used: ECONNREFUSED"],
  ["demo --once --broker kafka://127.0.0.1:9", "Kafka at 127.0.0.1:9 cannot be used: ECONNREFUSED"],
  ["demo --once --broker amqp://me:hunter2@127.0.0.1:9", "RabbitMQ cannot be used: 127.0.0.1:9: connect ECONNREFUSED"],
  ["demo --once --broker redis://:hunter2@127.0.0.1:9", "Redis cannot be used: cannot connect to redis://127.0.0.1:9"],
  ["demo --once --broker mqtt://127.0.0.1:9", "MQTT cannot be used: ECONNREFUSED"],
  ["demo --once --broker nats://127.0.0.1:9", "NATS at 127.0.0.1:9 cannot be used: ECONNREFUSED"],
  ["demo --once --database mysql://root:hunter2@127.0.0.1:9/shop", "no database answers at mysql://127.0.0.1:9/shop"],
];

describe("right input that leads nowhere", () => {
  test.concurrent.each(AWAY)("%s", async (line, saysThis) => {
    const args = withDatabase(line);
    const { code, stderr } = await rowpost(args);
    expect(code).toBe(1);
    const [told, ...rest] = stderr.trimEnd().split("\n");
    expect(rest).toEqual([]);
    expect(told).toContain(saysThis);
    expect(stderr).not.toContain("hunter2");
  });

  test("--verbose adds the stack, still without the password", async () => {
    const { code, stderr } = await rowpost([
      "status",
      "--verbose",
      "--database",
      "mysql://root:hunter2@127.0.0.1:9/shop",
    ]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^rowpost: no database answers/);
    expect(stderr).toMatch(/\n {4}at /);
    expect(stderr).not.toContain("hunter2");
  });

  test("a password may stand in the environment, and is not printed", async () => {
    const env = { ROWPOST_DATABASE_URL: "mysql://root@127.0.0.1:9/shop", ROWPOST_DATABASE_PASSWORD: "hunter2" };
    const { code, stderr } = await rowpost(["status", "--verbose"], env);
    expect({ code, leaked: stderr.includes("hunter2") }).toEqual({ code: 1, leaked: false });
  });
});

describe("help", () => {
  const COMMANDS = ["demo", "migrate", "relay", "status", "list", "show", "retry", "suspend", "resume", "archive"];

  test.each(COMMANDS)("of %s has examples", async (name) => {
    const { code, stdout } = await rowpostHere([name, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("Examples:");
    expect(stdout).toContain(`rowpost ${name}`);
  });

  test("lists every command; no arguments at all is wrong input", async () => {
    const { stdout } = await rowpost(["--help"]);
    for (const name of COMMANDS) expect(stdout).toMatch(new RegExp(`^ {2}${name} `, "m"));
    expect(await rowpost([])).toMatchObject({ code: 2, stdout: "" });
    expect((await rowpost(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
