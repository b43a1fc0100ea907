/**
 * packages/rowpost/sql/<dialect>.sql: every statement of the default layout as the server gets it,
 * in the order of a message's way, each under the comment of its builder, which says what it locks.
 * Fails when a file is not what the sources say, and when a statement that writes has no comment
 * (on SQLite, whose one lock is told at the head of its file, it needs none).
 *
 *   npm run check:sql                             compares
 *   node tools/sql-as-it-runs.mjs --write         writes them, after tsc -b
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const LIBRARY = "packages/rowpost";
/** Statements shared by all dialects. */
const SHARED = ["insight/find", "insight/statements", "by-hand/statements"];
const WIDTH = 100;

/** Statements whose builder has another name. */
const BUILDERS = {
  verifyClaim: ["verify"],
  listInFlight: ["list"],
  readHeld: ["held"],
  failPending: ["fail", "fencedStatements", "fencedChanges"],
  suspendPending: ["suspend", "fencedStatements", "fencedChanges"],
  park: ["fencedStatements", "fencedChanges"],
  reportInstance: ["registryStatements"],
  writeReport: ["registryStatements"],
  removeInstance: ["registryStatements"],
  forgetInstances: ["registryStatements"],
  copyToArchive: ["removalStatements"],
  deleteRows: ["removalStatements"],
  purgeArchive: ["removalStatements"],
  operatorRetry: ["changeTexts"],
  bringForward: ["changeTexts"],
  suspendRows: ["changeTexts"],
  resumeRows: ["changeTexts"],
  recoverRows: ["recover"],
  resetBackoff: ["reset"],
  readClock: ["clockStatements"],
  shortenWaits: ["clockStatements"],
  listTimed: ["timed"],
  applyTimed: ["applyTexts"],
  failUnknownStates: ["failUnknown", "failStrays"],
  failUnreached: ["failUnreached", "failStrays"],
  lockFinished: ["finished", "removalStatements"],
  passFinished: ["pass", "removalStatements"],
};

const token = { id: "100", shard: 0, deliveryCount: 0, lockVersion: "0", identityHash: "0" };
const outcome = { ...token, toState: "sent", messageId: "01AB", retryDelta: 0, deliveryDelta: 0, nextRetryInMs: null };
const message = { type: "order.created", key: "1", topic: "orders", body: "{}", headers: null, contentType: null };
const messages = [{ ...message, orderingKey: null, delayMs: null, deliverAtMs: null, createdBy: "shop" }];

const rows = [token];
const held = [{ shard: 0, epoch: "1" }];
const action = { author: "somebody", reason: "a reason" };
const rule = { scope: "topic", value: "orders" };
const limits = { afterId: "0", immediateLimit: 500, dueLimit: 125 };

/** All shards at epoch 1. */
function fenceOf({ shardCount }) {
  return { owner: "me", epochs: Array.from({ length: shardCount }, () => "1") };
}

/** One call of each statement, in the order of a message's way. */
function calls(statements) {
  return {
    "Writing a message, in the user's transaction": writing(statements),
    "Holding shards": holding(statements),
    "Finding what waits": finding(statements),
    "Taking it": taking(statements),
    "Writing what came of it": settling(statements),
    "What consumers report": reporting(statements),
    "Not now": notNow(statements),
    "Looking after it": lookingAfter(statements),
    "Moving it away": movingAway(statements),
    "What people do": people(statements),
  };
}

function writing({ enqueue }) {
  const check = { asked: true, mark: "mark" };
  return [
    ...(enqueue.markTransaction === undefined ? [] : [["markTransaction", enqueue.markTransaction("mark")]]),
    ["insert", enqueue.insert(messages, check)],
    ...(enqueue.seeIdentities === undefined ? [] : [["seeIdentities", enqueue.seeIdentities(messages, check)]]),
    ...(enqueue.readRoom === undefined ? [] : [["readRoom", enqueue.readRoom(check)]]),
    ["findIdentities", enqueue.findIdentities(messages, check)],
    ["deleteIdentities", enqueue.deleteIdentities(messages, check)],
  ];
}

function holding({ leases }) {
  const observed = [{ shard: 0, owner: undefined, epoch: "0", leaseUntil: "1970-01-01 00:00:00.000", leaseMs: 0 }];
  return [
    ["ensureShards", leases.ensureShards()],
    ["reportInstance", leases.reportInstance({ owner: "me", label: "host:1" })],
    ["writeReport", leases.writeReport({ owner: "me", report: "{}" })],
    ["readReports", leases.readReports()],
    ["renew", leases.renew({ owner: "me", leaseMs: 10_000, held })],
    ["readLeases", leases.readLeases()],
    ["readInstances", leases.readInstances(10_000)],
    ["readSuspensions", leases.readSuspensions()],
    ["take", leases.take({ owner: "me", leaseMs: 10_000, observed })],
    ...["recoverShards", "recoverListed", "clearListed"].map((name) => [name, leases[name]([0])]),
    ["release", leases.release({ owner: "me", shards: held })],
    ["removeInstance", leases.removeInstance("me")],
    ["forgetInstances", leases.forgetInstances()],
  ];
}

function finding({ relay }) {
  const scan = { shards: undefined, bodyLimit: 1_048_576, ...limits };
  const keys = (count) => Array.from({ length: count }, (_, index) => ({ orderingKey: `key-${index}`, upToId: "100" }));
  return [
    ["scan", relay.scan(scan)],
    ["scan", relay.scan({ ...scan, shards: [0, 1] }), "of some shards"],
    ["scanTopics", relay.scanTopics({ ...scan, topics: [{ topic: "orders", ...limits }] })],
    ["nextTopics", relay.nextTopics([""])],
    ["readBodies", relay.readBodies(["100"])],
    ["keyQueues", relay.keyQueues({ keys: keys(1), failedBlocks: true })],
    ["keyQueues", relay.keyQueues({ keys: keys(50), failedBlocks: true }), "of many keys"],
  ];
}

function taking({ facts, relay }) {
  const fence = fenceOf(facts);
  return [
    ["claim", relay.claim({ fence, rows })],
    ["claim", relay.claim({ fence, rows, skipLocked: true }), "past locked rows"],
    ["verifyClaim", relay.verifyClaim({ fence, rows })],
    ["listInFlight", relay.listInFlight({ fence, idsByShard: [{ shard: 0, ids: ["100"] }] })],
    ["readHeld", relay.readHeld(fence)],
  ];
}

function settling({ facts, relay }) {
  const fence = fenceOf(facts);
  const settle = (fields) => ({
    fence,
    outcomes: [{ ...outcome, failReason: null, ...fields }],
    elapsedMs: 5,
    from: "sending",
  });
  return [
    ["settleSent", relay.settleSent(settle({}))],
    ["deleteSent", relay.deleteSent({ fence, rows, from: "sending" })],
    ["settleOther", relay.settleOther(settle({ toState: "failed", retryDelta: 1 }))],
    ["readRows", relay.readRows(["100"])],
    ["lockFreeRows", relay.lockFreeRows(["100"])],
  ];
}

function reporting({ confirm }) {
  const identities = [{ type: "order.created", key: "1" }];
  return [
    ["confirmIdentities", confirm.confirmIdentities(identities)],
    ["lockIdentities", confirm.lockIdentities(identities, "messages")],
    ["lockIdentities", confirm.lockIdentities(identities, "archive"), "in the archive"],
    ["confirmRows", confirm.confirmRows(["100"])],
    ["confirmArchived", confirm.confirmArchived(identities)],
    ["touchRows", confirm.touchRows(["100"])],
    ["reportFailed", confirm.reportFailed([{ id: "100", reason: "NOT_CONSUMED: a reason" }])],
    ["addConfirmations", confirm.addConfirmations([{ id: "100", consumer: "billing" }])],
    ["readConfirmations", confirm.readConfirmations(["100"])],
    ["forgetConfirmations", confirm.forgetConfirmations({ olderThanMs: 1_000, limit: 500 })],
    ["countUnknown", confirm.countUnknown(10_000)],
    ["keepUnknown", confirm.keepUnknown([{ ...identities[0], consumer: "", reason: null, times: 1 }])],
    ["forgetUnknown", confirm.forgetUnknown({ olderThanMs: 1_000, limit: 500 })],
  ];
}

function notNow({ facts, housekeeping }) {
  const fence = fenceOf(facts);
  return [
    [
      "setBehind",
      housekeeping.setBehind({ fence, rows: [{ ...token, headId: "99", instant: "3000-01-01 00:00:00.099" }] }),
    ],
    ["bringBack", housekeeping.bringBack({ instants: ["3000-01-01 00:00:00.099"], limit: 500 })],
    ["nextBehind", housekeeping.nextBehind("3000-01-01 00:00:00.000")],
    ["park", housekeeping.park({ fence, rows, parkMs: 5_000 })],
    ["resetBackoff", housekeeping.resetBackoff({ topic: "orders", limit: 500, stepMs: 1 })],
    ["readClock", housekeeping.readClock()],
    ["shortenWaits", housekeeping.shortenWaits({ beyondMs: 600_000, limit: 500, stepMs: 1 })],
    ["suspendPending", housekeeping.suspendPending({ fence, rows, failReason: "a reason", endsInMs: null })],
    [
      "failPending",
      housekeeping.failPending({ fence, rows: [{ ...token, failReason: "a reason" }], nextRetryInMs: null }),
    ],
  ];
}

function lookingAfter({ facts, housekeeping }) {
  const fence = fenceOf(facts);
  const timed = (transition) => ({ ...token, transition, failReason: null, nextRetryInMs: null });
  const transitions = ["slowRetry", "resume", "confirmTimeoutResend", "confirmTimeoutFail", "clearTimer"];
  return [
    ["listSending", housekeeping.listSending({ shards: undefined, limit: 500 })],
    ["recoverRows", housekeeping.recoverRows({ fence, rows })],
    ["listTimed", housekeeping.listTimed(500)],
    ...transitions.map((transition) => [
      "applyTimed",
      housekeeping.applyTimed({ transition, decisions: [timed(transition)], skipLocked: true }),
      transition,
    ]),
    ["listStrays", housekeeping.listStrays(500)],
    ["failUnknownStates", housekeeping.failUnknownStates(["100"])],
    ["failUnreached", housekeeping.failUnreached(["100"])],
    ["gauges", housekeeping.gauges(10_000)],
  ];
}

function movingAway({ housekeeping }) {
  return [
    ["lockFinished", housekeeping.lockFinished({ state: "sent", olderThanMs: 1_000, afterId: "0", limit: 500 })],
    ["passFinished", housekeeping.passFinished({ state: "sent", afterId: "0", rows: 500 })],
    ["copyToArchive", housekeeping.copyToArchive(["100"])],
    ["deleteRows", housekeeping.deleteRows(["100"])],
    ["purgeArchive", housekeeping.purgeArchive({ olderThanMs: 1_000, limit: 500 })],
  ];
}

/** Statements shared by all dialects, in this dialect. */
function people({ admin, table }) {
  const page = { archived: false, newestFirst: true, limit: 50 };
  const find = (request) => shared.find(table, { ...page, ...request });
  return [
    ["find", find({ along: "names", match: { types: ["order.created"], key: "20261121-0042" } })],
    ["find", find({ along: "states", match: { states: ["failed"], topic: "orders" } }), "of a rare state"],
    ["find", find({ along: "ids", match: { failReasonContains: "away" }, lowId: "80001" }), "by ids"],
    ["chunkEnd", shared.chunkEnd(table, { archived: false, newestFirst: true, rows: 20_000, highId: "100000" })],
    ["readMessages", shared.readMessages(table, { archived: false, bodies: false, ids: ["100"] })],
    ["nextType", shared.nextType(table, { archived: false, after: "order.created" })],
    ["idBounds", shared.idBounds(table, { archived: false })],
    ["createdFrom", shared.createdFrom(table, { archived: false, ids: ["100", "200"] })],
    ["createdOfLastArchived", shared.createdOfLastArchived(table, 64)],
    ["placeOf", shared.placeOf(table, "100")],
    ["countWaiting", shared.countWaiting(table, 10_000)],
    ["readChanges", shared.readChanges(table, { id: "100", limit: 100 })],
    ["countStates", shared.countStates(table, { states: ["failed"], limit: 10_000 })],
    ["oldestDue", shared.oldestDue(table)],
    ["countByState", shared.countByState(table)],
    ["lockRows", shared.lockRows(table, ["100"])],
    ["recordChange", shared.recordChange(table, { ...action, action: "retry", changed: 1, ids: ["100"] })],
    ["operatorRetry", admin.operatorRetry({ ids: ["100"], action })],
    ["bringForward", admin.bringForward({ ids: ["100"], action })],
    ["suspendRows", admin.suspendRows({ ids: ["100"], action, untilMs: null })],
    ["resumeRows", admin.resumeRows({ ids: ["100"], action })],
    ["putSuspension", admin.putSuspension({ ...rule, reason: "a reason", author: "somebody", endsInMs: null })],
    ["deleteSuspension", shared.deleteSuspension(table, rule)],
    ["listSuspendedBy", shared.listSuspendedBy(table, { ...rule, limit: 500 })],
  ].map(([name, statement, variant]) => [name, spelled(table.words, statement), variant]);
}

/** Comment before the builder of this name, if any. */
function commentOf(source, name) {
  const block = String.raw`\/\*\*?((?:(?!\*\/)[\s\S])*)\*\/`;
  const lines = String.raw`((?:[ \t]*\/\/[^\n]*\n)+)`;
  const builder = String.raw`\s*(?:export )?(?:const |function )?${name}(?:Text)?(?: = |\(|: )`;
  const found = new RegExp(`(?:${block}|${lines})${builder}`).exec(source);
  const text = found?.[1] ?? found?.[2];
  return text?.replace(/^\s*(\*|\/\/) ?/gm, "").trim();
}

/** `-- …` lines. Keeps blank lines. */
function asComment(text) {
  const lines = [];
  for (const paragraph of text.split(/\n\s*\n/)) {
    let line = "--";
    for (const word of paragraph.split(/\s+/)) {
      if (line.length + word.length + 1 > WIDTH) {
        lines.push(line);
        line = "--";
      }
      line += ` ${word}`;
    }
    lines.push(line, "--");
  }
  return lines.slice(0, -1).join("\n");
}

const WRITES = /\b(INSERT|UPDATE|DELETE)\b|FOR SHARE|IN SHARE MODE/;

async function printed(dialect, problems) {
  const { createStatements } = await import(`../${LIBRARY}/dist/databases/${dialect}/statements.js`);
  const { defaultLayout } = await import(`../${LIBRARY}/dist/databases/sql/layouts.js`);
  const { withoutEngineColumns } = await import(`../${LIBRARY}/dist/databases/sql/sql-names.js`);
  const folder = `${LIBRARY}/src/databases/${dialect}`;
  const files = readdirSync(folder).filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"));
  const ofAll = SHARED.map((file) => `${LIBRARY}/src/databases/sql/${file}.ts`);
  const sources = [...files.map((file) => `${folder}/${file}`), ...ofAll];
  const source = sources.map((file) => readFileSync(file, "utf8")).join("\n");
  const port = readFileSync(`${LIBRARY}/src/databases/sql/statements.ts`, "utf8");
  const parts = [asComment(HEADS[dialect])];
  const statements = createStatements(dialect === "mysql" ? defaultLayout : withoutEngineColumns(defaultLayout));
  for (const [section, list] of Object.entries(calls(statements))) {
    parts.push(`-- ${"=".repeat(WIDTH - 3)}\n-- ${section}`);
    let last;
    for (const [name, { text }, variant] of list) {
      const names = [name, ...(BUILDERS[name] ?? [])];
      const comment = names.map((each) => commentOf(source, each)).find((each) => each !== undefined);
      if (comment === undefined && dialect !== "sqlite" && WRITES.test(text))
        problems.push(`${dialect}: ${name} has no comment on what it locks`);
      const about = comment ?? commentOf(port, name);
      const title = `-- ${name}${variant === undefined ? "" : `, ${variant}`}`;
      parts.push([title, ...(about === undefined || name === last ? [] : [asComment(about)]), `${text};`].join("\n"));
      last = name;
    }
  }
  return `${parts.join("\n\n")}\n`;
}

const GENERAL =
  "Every statement of the default layout as the server gets it, in the order of a message's way. Each stands under the comment of its builder, which says what it locks and what happens if we die right after it. Made by tools/sql-as-it-runs.mjs; see src/databases/ for the builders and docs/ for the rules.";
const HEADS = {
  mysql: `${GENERAL}\n\nMySQL 8 and 9 and MariaDB get the same text: what stands in /*M! … */ is read by MariaDB alone, in /*!80017 … */ by MySQL from that version on. The relay's sessions are READ COMMITTED; each statement outside a transaction commits by itself.`,
  postgres: `${GENERAL}\n\nThe relay's sessions are READ COMMITTED; each statement outside a transaction commits by itself. What takes no parameters is planned anew each time.`,
  sqlite: `${GENERAL}\n\nSQLite has one write lock for the whole file: a statement that writes has it until its commit, and no statement locks a row. In WAL mode a reader waits for nobody.`,
};

const { spelled } = await import(`../${LIBRARY}/dist/databases/sql/cold.js`);
const shared = {};
for (const file of SHARED) Object.assign(shared, await import(`../${LIBRARY}/dist/databases/sql/${file}.js`));

const write = process.argv.includes("--write");
const problems = [];
for (const dialect of Object.keys(HEADS)) {
  const file = `${LIBRARY}/sql/${dialect}.sql`;
  const wanted = await printed(dialect, problems);
  if (write) writeFileSync(file, wanted);
  else if (!existsSync(file) || readFileSync(file, "utf8") !== wanted)
    problems.push(`${file} is not what the sources say: node tools/sql-as-it-runs.mjs --write`);
}
for (const problem of problems) console.error(problem);
console.log(problems.length === 0 ? "sql: ok" : `sql: ${problems.length} problem(s)`);
process.exitCode = problems.length === 0 ? 0 : 1;
