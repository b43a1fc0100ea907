/**
 * Who may import whom. Each rule is the enforcement of one sentence; the sentence stands in its
 * comment, with the reason.
 *
 *   runtime, message <- outbox, relay, queue, inbox, admin
 *   <- databases, brokers, transactions <- consume, testing <- server, nestjs
 *
 * Tests are exempt: a test may look at anything. Types count like values, because a type import is
 * how a layer starts to leak.
 */

const library = "^packages/rowpost/src";

/** What users import: the sources of the entries that the library's manifest lists. */
const entries = Object.values(require("./packages/rowpost/package.json").exports).flatMap((entry) =>
  typeof entry === "string" ? [] : [entry["rowpost-source"].replace("./src/", "").replaceAll(".", "\\.")],
);

/**
 * The port files: the only thing that a feature sees of the databases, brokers and transactions
 * behind it.
 */
const ports = [
  `${library}/databases/database\\.ts$`,
  `${library}/(?:relay|queue|inbox)/store\\.ts$`,
  `${library}/admin/(?:message-admin|(?:doctor|reconcile)/store|doctor/diagnosis)\\.ts$`,
  `${library}/brokers/broker\\.ts$`,
  `${library}/transactions/executor\\.ts$`,
];

/** Tests, beside the sources and in the test folders. */
const isTest = "\\.test\\.ts$|^[^/]+/[^/]+/test/|^bench/test/";

module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      severity: "error",
      comment:
        "Two files that need each other are one file, or a third one is missing; and neither can be read or tested alone.",
      from: { pathNot: isTest },
      to: { circular: true },
    },
    {
      name: "runtime-knows-no-domain",
      severity: "error",
      comment:
        "runtime/ holds small things without a subject (clock, backoff, logger port). It imports nothing of ours outside itself, so that every layer can use it.",
      from: { path: `${library}/runtime/`, pathNot: isTest },
      to: { path: "^(packages|bench)/", pathNot: `${library}/runtime/` },
    },
    {
      name: "message-knows-only-runtime",
      severity: "error",
      comment:
        "What a message is does not depend on where it is stored or sent: message/ imports itself and runtime/ only, and stays testable without any I/O.",
      from: { path: `${library}/message/`, pathNot: isTest },
      to: { path: "^(packages|bench)/", pathNot: `${library}/(message|runtime)/` },
    },
    {
      name: "features-see-ports-only",
      severity: "error",
      comment:
        "outbox/, relay/, inbox/ and admin/ are the same on every database and broker. They see runtime/, message/ and the port files; a feature that knows a dialect or another feature has to be tested once for each.",
      from: {
        path: `${library}/(outbox|relay|inbox|admin)/`,
        pathNot: [`${library}/inbox/reading/`, isTest],
      },
      to: { path: "^(packages|bench)/", pathNot: [`${library}/(message|runtime)/`, `${library}/$1/`, ...ports] },
    },
    {
      name: "queue-sees-ports-and-cold-sql",
      severity: "error",
      comment:
        "The queue is stored in SQL and in nothing else. What it does now and then is written in it once (databases/sql/cold.ts) and runs on sessions of its own (databases/sql/queue/room.ts), so that a port would have one implementation; no dialect is seen all the same. What runs for every message is behind queue/store.ts. The relay's leases and pacing know no message, and hold the queue's partitions as well.",
      from: { path: `${library}/queue/`, pathNot: isTest },
      to: {
        path: "^(packages|bench)/",
        pathNot: [
          `${library}/(message|runtime|queue)/`,
          `${library}/relay/(leases|pacing)/`,
          `${library}/databases/sql/(cold|rows|queue/(names|room|values))\\.ts$`,
          ...ports,
        ],
      },
    },
    {
      name: "reading-takes-what-carries",
      severity: "error",
      comment:
        "inbox/reading/ reads the identity of a message as each broker carries it. It takes the file of the broker that encodes and decodes headers, which knows no client, and nothing else of it.",
      from: { path: `${library}/inbox/reading/`, pathNot: isTest },
      to: {
        path: "^(packages|bench)/",
        pathNot: [
          `${library}/(message|runtime|inbox)/`,
          `${library}/brokers/(nats/carry|(mqtt|sqs)/carry|redis/entry|http/headers|rocketmq/carry)\\.ts$`,
        ],
      },
    },
    {
      name: "consume-takes-what-carries",
      severity: "error",
      comment:
        "consume/ drives the inbox with the messages of a client that the user has. It reads them with the files of the brokers that encode and decode, which know no client, and takes nothing else of an adapter. But for RocketMQ, whose client is our own: its connection and session are the producer's; and for Redis, whose connections are made from the user's client as the producer's are.",
      from: { path: `${library}/consume/`, pathNot: isTest },
      to: {
        path: "^(packages|bench)/",
        pathNot: [
          `${library}/(message|runtime|inbox|consume)/`,
          `${library}/transactions/executor\\.ts$`,
          `${library}/brokers/http/(headers|signature)\\.ts$`,
          `${library}/brokers/nats/carry\\.ts$`,
          `${library}/brokers/redis/(client|entry)\\.ts$`,
          `${library}/brokers/rocketmq/(carry|connection|failures|grpc|options|session)\\.ts$`,
        ],
      },
    },
    {
      name: "nobody-imports-consumers",
      severity: "error",
      comment: "A consumer stands above all of it; who publishes, stores or handles must not need one.",
      from: { path: `${library}/`, pathNot: [`${library}/consume/`, isTest] },
      to: { path: `${library}/consume/` },
    },
    {
      name: "ports-are-types",
      severity: "error",
      comment:
        "A feature takes the port's types and is handed the object. A value imported through a port file would tie the feature to the adapter's code.",
      from: { path: `${library}/(outbox|relay|queue|inbox|admin)/`, pathNot: isTest },
      to: { path: ports, dependencyTypesNot: ["type-only"] },
    },
    {
      name: "adapters-call-no-feature",
      severity: "error",
      comment:
        "databases/, brokers/ and transactions/ implement the ports that the features declare, so they may take their types. They never call a feature: the relay drives the broker, not the other way round. The queue's statements.ts are no calls, but SQL that the store runs too.",
      from: { path: `${library}/(databases|brokers|transactions)/`, pathNot: isTest },
      to: {
        path: `${library}/(outbox|relay|queue|inbox|admin)/`,
        pathNot: `${library}/queue/[^/]+/statements\\.ts$`,
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "dialects-never-meet",
      severity: "error",
      comment:
        "mysql/, postgres/ and sqlite/ never import each other: flow that they share belongs in databases/sql/, and a statement is only readable when it is whole.",
      from: { path: `${library}/databases/(mysql|postgres|sqlite)/`, pathNot: isTest },
      to: { path: `${library}/databases/(mysql|postgres|sqlite)/`, pathNot: `${library}/databases/$1/` },
    },
    {
      name: "shared-sql-knows-no-dialect",
      severity: "error",
      comment:
        "databases/sql/ and the port are what dialects are built on; a shared flow that asks which dialect it is has a wrong seam.",
      from: { path: `${library}/databases/(sql/|database\\.ts$)`, pathNot: isTest },
      to: { path: `${library}/databases/(mysql|postgres|sqlite)/` },
    },
    {
      name: "databases-know-no-broker",
      severity: "error",
      comment: "Storage and transport are chosen apart from each other; only the relay has both.",
      from: { path: `${library}/(databases|transactions)/`, pathNot: isTest },
      to: { path: `${library}/brokers/` },
    },
    {
      name: "brokers-know-no-database",
      severity: "error",
      comment: "Storage and transport are chosen apart from each other; only the relay has both.",
      from: { path: `${library}/brokers/`, pathNot: isTest },
      to: { path: `${library}/(databases|transactions)/` },
    },
    {
      name: "brokers-never-meet",
      severity: "error",
      comment:
        "One broker is one file, or one folder, beside broker.ts. It never imports another: whoever uses one must not load two, and what two share belongs in publishing/ (how a call runs) or settings/ (how options and URLs are read). Those two know no broker.",
      from: { path: `${library}/brokers/([^/.]+)`, pathNot: isTest },
      to: {
        path: `${library}/brokers/`,
        pathNot: [
          // Either protocol of RocketMQ has the same fields, failures, topics, keys and URLs.
          `${library}/brokers/rocketmq/(carry|routes|rules|access-keys|url-parts)\\.ts$`,
          `${library}/brokers/$1(\\.ts$|/)`,
          `${library}/brokers/broker\\.ts$`,
          `${library}/brokers/(publishing|settings)/`,
        ],
      },
    },
    {
      name: "transactions-know-only-the-port",
      severity: "error",
      comment:
        "A handle is told by its shape, whatever database is behind it: transactions/ sees the database port, not a database.",
      from: { path: `${library}/transactions/`, pathNot: isTest },
      to: { path: `${library}/databases/`, pathNot: `${library}/databases/database\\.ts$` },
    },
    {
      name: "nobody-imports-testing",
      severity: "error",
      comment:
        "testing/ is for tests and for users' tests. Code that runs in production must not need fault injection or a contract.",
      from: {
        path: `${library}/|^packages/server/src/`,
        pathNot: [`${library}/testing/`, isTest],
      },
      to: { path: `${library}/testing/` },
    },
    {
      name: "nobody-imports-the-entry",
      severity: "error",
      comment:
        "src/index.ts re-exports for users. An import of it from inside loads everything and hides what a file really needs.",
      from: { path: `${library}/.+/`, pathNot: isTest },
      to: { path: `${library}/index\\.ts$` },
    },
    {
      name: "library-knows-no-user",
      severity: "error",
      comment:
        "The server and the Nest module put the library together as users do: they may import all of it, and nobody imports them, but for the console's app, which takes the types of the API, and the benchmark of the console.",
      from: { path: "^(packages/[^/]+|bench)/", pathNot: "^(packages/console|bench/src/console)/" },
      to: { path: "^packages/(server|nestjs)/", pathNot: "^$1/" },
    },
    {
      name: "nobody-imports-the-command-line",
      severity: "error",
      comment:
        "cli/ is on top: what a command shares with the console, the alerts or the relay stands outside of it. The demo is a command too.",
      from: { path: "^packages/server/src/(?!cli/|demo/|bin\\.ts$|.*\\.test\\.ts$)" },
      to: { path: "^packages/server/src/cli/" },
    },
    {
      name: "users-take-public-entries",
      severity: "error",
      comment:
        "The server, the Nest module and the benchmarks import `rowpost` and its subpaths like any user; what they need and cannot reach is missing in the public API.",
      from: { path: "^(packages/(server|nestjs)|bench)/src/", pathNot: isTest },
      to: {
        path: library,
        pathNot: `${library}/(${entries.join("|")})$`,
      },
    },
    {
      name: "clients-only-in-adapters",
      severity: "error",
      comment:
        "The library has no dependency. Drivers and broker clients are optional peers and are named in databases/*/ and brokers/* alone; the OpenTelemetry API, also optional, in runtime/.",
      from: { path: `${library}/`, pathNot: [`${library}/(databases/[^/]+|brokers)/`, isTest] },
      to: {
        dependencyTypes: ["npm", "npm-dev", "npm-optional", "npm-peer", "npm-no-pkg", "npm-unknown"],
        pathNot: "node_modules/@opentelemetry/api/",
      },
    },
    {
      name: "telemetry-only-in-runtime",
      severity: "error",
      comment: "The optional OpenTelemetry API is found or missed at one place.",
      from: { path: "^packages/[^/]+/src/", pathNot: [`${library}/runtime/`, isTest] },
      to: { path: "node_modules/@opentelemetry/api/" },
    },
    {
      name: "clients-are-loaded-lazily",
      severity: "error",
      comment:
        "Importing rowpost, or one of its subpaths, loads no driver: a client is loaded by import() at its first use, and a missing one is then reported with its install line. Not even its types are imported: they would stand in our public signatures.",
      from: { path: `${library}/`, pathNot: isTest },
      to: {
        dependencyTypes: ["npm", "npm-dev", "npm-optional", "npm-peer", "npm-no-pkg", "npm-unknown"],
        dynamic: false,
      },
    },
    {
      name: "sqlite-of-node-is-loaded-lazily",
      severity: "error",
      comment: "node:sqlite does not exist on Node 20: a static import of it would break every user there.",
      from: { path: "^(packages|bench)/", pathNot: isTest },
      to: { path: "^(node:)?sqlite$", dynamic: false },
    },
    {
      name: "hono-is-its-core",
      severity: "error",
      comment:
        "The router is taken from hono, and nothing else: its middleware (static files, cookies, limits, CORS) is where its security advisories are, and what we need of it is a few lines of our own.",
      from: { path: "^packages/", pathNot: isTest },
      to: { path: "node_modules/hono/", pathNot: "node_modules/hono/dist/(types/)?index\\.(js|d\\.ts)$" },
    },
    {
      name: "app-takes-types-only",
      severity: "error",
      comment:
        "The console's app runs in a browser: of the server it takes the types of the API, and no value, which would bring the route table and its schemas along.",
      from: { path: "^packages/console/src/" },
      to: { path: "^packages/(rowpost|server|nestjs)/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "everything-resolves",
      severity: "error",
      comment:
        "An import that resolves to nothing is a typo, or a package that nobody declared; node:sqlite and @platformatic/kafka are not there on Node 20.",
      from: {},
      to: { couldNotResolve: true, pathNot: "^((node:)?sqlite|@platformatic/kafka)$" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    // What is ours and built; an import of somebody else's has to be seen, wherever it is built.
    exclude: { path: "^(packages/[a-z]+|bench|reports)/(dist|bundle|coverage)/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.base.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["rowpost-source", "import", "node", "default", "types"],
      extensions: [".ts", ".js", ".mjs", ".cjs", ".json"],
    },
    reporterOptions: { text: { highlightFocused: true } },
  },
};
