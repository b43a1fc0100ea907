/** Preparing a statement on a live server: what is no SQL there, or names no column, is refused. */
import type { DialectName, Session } from "../../src/databases/database.ts";
import type { Statement } from "../../src/transactions/executor.ts";

export type Prepare = (session: Session, statement: Statement) => Promise<void>;

/** By the words of each dialect; SQLite prepares what it explains. */
export const PREPARE: Readonly<Record<DialectName, Prepare>> = {
  async mysql(session, { text }) {
    // MariaDB looks at the check for a transaction while it prepares.
    await run(session, "START TRANSACTION");
    const quoted = `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
    await run(session, `PREPARE sample FROM ${quoted}`);
    await run(session, "DEALLOCATE PREPARE sample");
  },
  async postgres(session, { text }) {
    await run(session, `PREPARE sample AS ${text}`);
    await run(session, "DEALLOCATE sample");
  },
  async sqlite(session, { params, text }) {
    await session.run({ name: "explain", text: `EXPLAIN ${text}`, params });
  },
};

async function run(session: Session, text: string): Promise<void> {
  await session.run({ name: "sample", text, params: [] });
}

/** The same methods; each that is called is noted as `group.method`. */
export function recorded<Group extends object>(group: string, methods: Group, called: Set<string>): Group {
  return new Proxy(methods, {
    get(target, method, receiver): unknown {
      // What a dialect has not may be looked for.
      if (method in target) called.add(`${group}.${String(method)}`);
      return Reflect.get(target, method, receiver);
    },
  });
}
