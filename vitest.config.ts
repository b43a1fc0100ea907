import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { defaultClientConditions, defaultServerConditions, type Plugin } from "vite";
import { defineConfig } from "vitest/config";
import manifest from "./packages/rowpost/package.json" with { type: "json" };

/**
 * Tests read the TypeScript sources of every workspace; only the packaging and crash tests need
 * `npm run build`.
 */
const sourceCondition = "rowpost-source";

/**
 * CI adds up what all its runs of vitest passed and failed, in whatever step: each leaves a report
 * in this folder.
 */
const reportFolder = process.env["ROWPOST_TEST_REPORTS"];

/**
 * A folder with other versions of the peers (tools/test-peers.sh): the tests that run here, and the
 * sources under them, take these instead of the workspace's.
 */
const peersFolder = process.env["ROWPOST_TEST_PEERS"];

/**
 * Files that need a process to themselves: they ask whether an API has been found yet, count the
 * process's timers or the statements that it prepares, or put a module in the place of another.
 */
const ALONE = [
  "packages/rowpost/src/runtime/trace-context.test.ts",
  "packages/rowpost/src/runtime/deadline.test.ts",
  "packages/rowpost/src/transactions/prepare.test.ts",
  "packages/server/test/query-budget.test.ts",
  "packages/server/test/alert-budget.test.ts",
];

const TESTS = ["packages/*/{src,test}/**/*.test.ts", "bench/{src,test}/**/*.test.ts"];

/** Of every project. They do not extend the whole: each would probe the servers once more. */
const common = {
  plugins: peersFolder === undefined ? [] : [otherPeers(peersFolder)],
  resolve: { conditions: [sourceCondition, ...defaultClientConditions] },
  // Not "module": what the AWS SDK has under it is for bundlers, and Node.js cannot load it.
  ssr: {
    resolve: { conditions: [sourceCondition, ...defaultServerConditions.filter((name) => name !== "module")] },
  },
};
const commonTest = {
  exclude: ["**/node_modules/**", "**/dist/**"],
  globals: false,
  environment: "node",
  // For what hangs; how long something takes is no matter of tests, and machines may be busy.
  testTimeout: 240_000,
  hookTimeout: 240_000,
  expect: { poll: { timeout: 30_000 } },
};

export default defineConfig({
  // For the global setup.
  ...common,
  test: {
    // `npx vitest run packages/rowpost/src` = unit tests beside the sources, which need no server.
    projects: [
      {
        // One process takes one file after another and keeps the sources that it has loaded: to
        // load them for each file was two thirds of the CPU time of the unit tests.
        ...common,
        test: {
          ...commonTest,
          name: "shared",
          isolate: false,
          include: TESTS,
          exclude: [...commonTest.exclude, ...ALONE],
        },
      },
      { ...common, test: { ...commonTest, name: "alone", include: ALONE } },
    ],
    // Probes the real servers once for each run, and starts an embedded PostgreSQL where there is
    // none.
    globalSetup: ["packages/rowpost/test/global-setup.ts"],
    reporters: reportFolder
      ? ["default", ["json", { outputFile: `${reportFolder}/vitest-${process.pid}.json` }]]
      : ["default"],
    // Processes, because the tests change process-wide things (signals, native handles). Three for
    // two processors: half of the time a test waits, for a server that was killed or a lease.
    pool: "forks",
    maxWorkers: 3,
    teardownTimeout: 10_000,
    coverage: {
      provider: "v8",
      include: ["packages/*/src/**/*.ts"],
      exclude: ["**/*.test.ts", "packages/rowpost/src/testing/**"],
      reporter: ["text-summary", "json-summary", "html"],
    },
  },
});

/** Also of subpaths, such as `mysql2/promise`. What the folder lacks comes from the workspace. */
function otherPeers(folder: string): Plugin {
  const { resolve } = createRequire(`${folder}/package.json`);
  const installed = Object.keys(manifest.peerDependencies).filter((name) =>
    existsSync(`${folder}/node_modules/${name}`),
  );
  const isInstalled = (id: string): boolean => installed.some((name) => id === name || id.startsWith(`${name}/`));
  return {
    name: "other-peers",
    enforce: "pre",
    resolveId: (id) => (isInstalled(id) ? { id: resolve(id), external: true } : undefined),
  };
}
