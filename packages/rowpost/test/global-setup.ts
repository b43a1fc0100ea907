/**
 * Once for each vitest run, before any test: asks every server whether it is there, says loudly
 * which are not, and where there is no PostgreSQL (and this is no CI run) starts an embedded one.
 * Tests read the outcome through `testService` in services.ts. With ROWPOST_TEST_POSTGRES=embedded
 * they get that one although another is there: it is a newer PostgreSQL, with plans of its own.
 */
import type { TestProject } from "vitest/node";
import { probe, services } from "../../../tools/services/probe.js";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";
import { absenceReason, isCi } from "./services.ts";

/** Returns what undoes it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let stop = async (): Promise<void> => {};
  const variable = services["postgres"]?.variable ?? "";
  if (process.env[variable] === "embedded") {
    const embedded = await startEmbeddedPostgres();
    stop = () => embedded.stop();
    process.env[variable] = embedded.address;
  }
  const reports = await Promise.all(Object.keys(services).map((name) => probe(name)));
  const postgres = reports.findIndex(({ name, present }) => name === "postgres" && !present);
  if (postgres >= 0 && !isCi()) {
    try {
      const embedded = await startEmbeddedPostgres();
      stop = () => embedded.stop();
      const report = await probe("postgres", embedded.address);
      reports[postgres] = { ...report, detail: `${report.detail} (embedded)` };
      process.stderr.write(`rowpost: no PostgreSQL server, using ${report.detail} embedded at ${embedded.address}\n`);
    } catch (error) {
      // The tests that need no server shall run all the same; those that need PostgreSQL are
      // reported below.
      process.stderr.write(`rowpost: the embedded PostgreSQL does not start: ${String(error)}\n`);
    }
  }
  for (const report of reports.filter(({ present }) => !present)) {
    process.stderr.write(
      `\nrowpost: ${report.name} IS MISSING: its tests ${isCi() ? "FAIL" : "ARE SKIPPED"}: ${absenceReason(report)}\n`,
    );
  }
  project.provide("rowpostServices", reports);
  return stop;
}
