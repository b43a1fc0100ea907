/**
 * Every statement of every dialect is prepared on every live server, for layouts that lack each
 * optional column in turn. The dialects' own files run the statements of the shipped layouts; here
 * it is the combinations, of which a user's table may be any.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DialectName, Session } from "../../src/databases/database.ts";
import { createStatements as mysqlStatements } from "../../src/databases/mysql/statements.ts";
import { createStatements as postgresStatements } from "../../src/databases/postgres/statements.ts";
import type { LayoutColumns, TableLayout } from "../../src/databases/sql/layout.ts";
import { createLayout, defaultLayout } from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { DialectStatements } from "../../src/databases/sql/statements.ts";
import { createStatements as sqliteStatements } from "../../src/databases/sqlite/statements.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import type { StoreHarness } from "../contracts/store-contract/harness.ts";
import { describeWithService } from "../services.ts";
import { PREPARE, type Prepare, recorded } from "./prepared.ts";
import { hotStatements, otherStatements } from "./statement-samples.ts";
import { mysqlHarness, postgresHarness, sqliteHarness } from "./store-harnesses.ts";

const OPTIONAL: readonly (keyof LayoutColumns)[] = [
  "lastRetryAt",
  "headers",
  "contentType",
  "orderingKey",
  "deliveryCount",
  "deliverAt",
  "messageId",
  "lockVersion",
  "sentAt",
  "consumedAt",
  "createdBy",
  "updatedBy",
];

/**
 * The default table without one column, without the claim token, and without everything that it can
 * do without. All of it is on the default table.
 */
const LAYOUTS: Readonly<Record<string, TableLayout>> = {
  "every column": defaultLayout,
  ...Object.fromEntries(OPTIONAL.map((column) => [`no ${column}`, without([column])])),
  "no claim token": without(["lockVersion", "deliveryCount"]),
  "no optional column": without(OPTIONAL),
};

function without(columns: readonly (keyof LayoutColumns)[]): TableLayout {
  const absent = [...columns, "settlePad"].map((column) => [column, undefined]);
  return createLayout({ columns: Object.fromEntries(absent) as Partial<LayoutColumns> });
}

const CREATE: Readonly<Record<DialectName, (layout: TableLayout) => DialectStatements>> = {
  mysql: mysqlStatements,
  postgres: postgresStatements,
  sqlite: sqliteStatements,
};

describe("statement samples", () => {
  for (const [dialect, create] of Object.entries(CREATE)) {
    test(`hold every statement of ${dialect}`, () => {
      const called = new Set<string>();
      const statements = recordedAll(create(defaultLayout), called);
      allStatements(statements);
      expect([...called].sort()).toEqual(namesOf(create(defaultLayout)));
    });
  }
});

describeWithService(["mariadb", "mysql9", "mysql8"], "statements of every layout", ({ name }) => {
  prepareAll(() => mysqlHarness(name, "mysql2", defaultLayout), mysqlStatements, PREPARE.mysql);
});

describeWithService("postgres", "statements of every layout", () => {
  prepareAll(() => postgresHarness(defaultLayout), postgresStatements, PREPARE.postgres);
});

describe("statements of every layout on sqlite", () => {
  prepareAll(() => Promise.resolve(sqliteHarness("memory", defaultLayout)), sqliteStatements, PREPARE.sqlite);
});

/**
 * One test for each layout: all its statements are prepared, and none that fails hides the others.
 */
function prepareAll(
  createHarness: () => Promise<StoreHarness>,
  create: (layout: TableLayout) => DialectStatements,
  prepare: Prepare,
): void {
  let harness: StoreHarness | undefined;
  let session: Session;
  let close: () => Promise<void>;
  beforeAll(async () => {
    harness = await createHarness();
    const database = await harness.createDatabase();
    await migrate(database, { layout: defaultLayout });
    session = await database.connect({ purpose: "tool" });
    close = () => database.close();
  });
  afterAll(async () => {
    await session.close();
    await close();
    await harness?.close?.();
  });

  for (const [title, layout] of Object.entries(LAYOUTS)) {
    test(`are prepared with ${title}`, async () => {
      const refused: string[] = [];
      for (const statement of allStatements(create(layout))) {
        await prepare(session, statement).catch((error: unknown) => {
          refused.push(`${statement.name}: ${String(error)}\n${statement.text}`);
        });
      }
      expect(refused).toEqual([]);
    });
  }
}

/** Without what makes tables: no server prepares that, and every test that migrates runs it. */
function allStatements(statements: DialectStatements): Statement[] {
  return [...hotStatements(statements), ...otherStatements(statements)];
}

/** `group.method`, of all that return statements. */
function namesOf(statements: DialectStatements): string[] {
  const { enqueue, leases, relay, housekeeping, admin } = statements;
  return Object.entries({ enqueue, leases, relay, housekeeping, admin })
    .flatMap(([group, methods]) => Object.keys(methods).map((method) => `${group}.${method}`))
    .sort();
}

/** The same statements; every method that is called is noted. */
function recordedAll(statements: DialectStatements, called: Set<string>): DialectStatements {
  return {
    ...statements,
    enqueue: recorded("enqueue", statements.enqueue, called),
    leases: recorded("leases", statements.leases, called),
    relay: recorded("relay", statements.relay, called),
    housekeeping: recorded("housekeeping", statements.housekeeping, called),
    admin: recorded("admin", statements.admin, called),
  };
}
