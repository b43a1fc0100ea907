import { defaultClientConditions, defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";

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

export default defineConfig({
  resolve: { conditions: [sourceCondition, ...defaultClientConditions] },
  ssr: { resolve: { conditions: [sourceCondition, ...defaultServerConditions] } },
  test: {
    // `npx vitest run packages/rowpost/src` = unit tests beside the sources, which need no server.
    include: ["packages/*/{src,test}/**/*.test.ts", "bench/{src,test}/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**"],
    // Probes the real servers once for each run, and starts an embedded PostgreSQL where there is
    // none.
    globalSetup: ["packages/rowpost/test/global-setup.ts"],
    reporters: reportFolder
      ? ["default", ["json", { outputFile: `${reportFolder}/vitest-${process.pid}.json` }]]
      : ["default"],
    globals: false,
    environment: "node",
    // Processes, because the tests change process-wide things (signals, native handles); two,
    // because servers run beside them.
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    coverage: {
      provider: "v8",
      include: ["packages/*/src/**/*.ts"],
      exclude: ["**/*.test.ts", "packages/rowpost/src/testing/**"],
      reporter: ["text-summary", "json-summary", "html"],
    },
  },
});
