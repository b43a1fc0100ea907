/** The doctor on real servers. What no test may do to a shared server is judged by rows. */
import { expect, it } from "vitest";
import { examine } from "../../src/admin/doctor/examine.ts";
import { doctorLooks as mysqlLooks } from "../../src/databases/mysql/doctor.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { doctorLooks as postgresLooks } from "../../src/databases/postgres/doctor.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import type { DoctorLook } from "../../src/databases/sql/doctor-statements.ts";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import type { Row } from "../../src/databases/sql/rows.ts";
import { describeWithService } from "../services.ts";
import { defineDoctorCases } from "./doctor.cases.ts";

/** What a look says of these rows. */
function judged(looks: readonly DoctorLook[], name: string, rows: readonly Row[]): readonly string[] {
  const look = looks.find(({ statement }) => statement.name === `doctor.${name}`);
  return (look?.judge(rows) ?? []).map(({ id, severity }) => `${severity} ${id}`);
}

describeWithService(["mariadb", "mysql9", "mysql8"], "doctor", ({ name }) => {
  defineDoctorCases(name, (bench, found) => {
    it("tells ids that run out", async () => {
      await bench().sql("ALTER TABLE local_message MODIFY id INT UNSIGNED NOT NULL AUTO_INCREMENT");
      await bench().sql(
        "INSERT INTO local_message (id, message_type, message_key, topic, message_body) VALUES (4200000000, 't', 'k', 'orders', '{}')",
      );
      const ids = (await found()).find(({ id }) => id === "D209");
      expect(ids).toMatchObject({ severity: "error", what: expect.stringContaining("97 % of the ids") });
    });

    it("tells a user who may not read the table", async () => {
      const user = `u${bench().url.slice(-8)}`.replace(/\W/g, "_");
      const address = new URL(bench().url);
      const schema = address.pathname.slice(1);
      await bench().sql(`CREATE USER ${user} IDENTIFIED BY 'Pw_1'`);
      await bench().sql(`GRANT CREATE ON ${schema}.* TO ${user}`);
      address.username = user;
      address.password = "Pw_1";
      const database = mysql({ url: address.href });
      const all = (await examine({ database })).found;
      await database.close();
      await bench().sql(`DROP USER ${user}`);
      expect(all.map(({ id }) => id)).toEqual(["D103"]);
    });
  });

  it("judges settings, tables, transactions and the history", () => {
    const looks = mysqlLooks(defaultLayout);
    const variable = (Variable_name: string, Value: string): Row => ({ Variable_name, Value });
    const good = [variable("read_only", "OFF"), variable("innodb_flush_log_at_trx_commit", "1")];
    expect(judged(looks, "variables", [...good, variable("sql_mode", "STRICT_TRANS_TABLES,X")])).toEqual([]);
    const bad = [
      ...[variable("read_only", "ON"), variable("innodb_flush_log_at_trx_commit", "2"), variable("sql_mode", "")],
      ...[variable("innodb_doublewrite", "OFF"), variable("max_allowed_packet", "1048576")],
    ];
    const all = ["error D201", "warning D204", "warning D205", "warning D204", "note D208"];
    expect(judged(looks, "variables", bad)).toEqual(all);
    const table = [{ engine: "MyISAM", collation: "latin1_swedish_ci" }];
    expect(judged(looks, "table", table)).toEqual(["error D202", "warning D206"]);
    const open = [{ kind: "thread", name: "5", seconds: "400", account: null, program: null, doing: null, held: "0" }];
    expect(judged(looks, "transactions", open)).toEqual(["warning D301"]);
    expect(judged(looks, "history", [{ versions: "2000000" }])).toEqual(["warning D302"]);
  });
});

describeWithService("postgres", "doctor", () => {
  defineDoctorCases("postgres", (bench, found) => {
    const ids = async (): Promise<readonly string[]> => (await found()).map(({ id, severity }) => `${severity} ${id}`);

    it("tells a table that a crash empties, and one without autovacuum", async () => {
      await bench().sql("ALTER TABLE local_message SET UNLOGGED");
      await bench().sql("ALTER TABLE local_message SET (autovacuum_enabled = off)");
      expect(await ids()).toEqual(["error D202", "warning D210", "warning D401"]);
    });

    it("tells settings of this database that lose messages, or keep writers out", async () => {
      const name = new URL(bench().url).pathname.slice(1);
      await bench().sql(`ALTER DATABASE ${name} SET synchronous_commit = off`);
      await bench().sql(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
      expect(await ids()).toEqual(["error D201", "warning D204", "warning D401"]);
    });

    it("tells row-level security that binds this role", async () => {
      const role = `r${bench().url.slice(-8)}`.replace(/\W/g, "_");
      await bench().sql("ALTER TABLE local_message ENABLE ROW LEVEL SECURITY");
      await bench().sql(`CREATE ROLE ${role} LOGIN PASSWORD 'Pw_1'`);
      await bench().sql(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`);
      const address = new URL(bench().url);
      address.username = role;
      address.password = "Pw_1";
      const database = postgres({ url: address.href });
      const all = (await examine({ database })).found;
      await database.close();
      await bench().sql(`DROP OWNED BY ${role}`);
      await bench().sql(`DROP ROLE ${role}`);
      expect(all.map(({ id }) => id)).toContain("D203");
    });

    it("tells ids that run out", async () => {
      await bench().sql("ALTER TABLE local_message ALTER COLUMN id TYPE integer");
      await bench().sql(
        "INSERT INTO local_message (id, message_type, message_key, topic, message_body) OVERRIDING SYSTEM VALUE VALUES (1800000000, 't', 'k', 'orders', '{}')",
      );
      expect(await ids()).toContain("warning D209");
    });

    it("tells a server that is not there", async () => {
      const database = postgres({ url: "postgres://postgres@127.0.0.1:9/x" });
      expect((await examine({ database })).found.map(({ id }) => id)).toEqual(["D101"]);
      await database.close();
    });
  });

  it("judges replicas, encodings, dead rows, old transactions, slots and connections", () => {
    const looks = postgresLooks(defaultLayout);
    const setting = (name: string, value: string): Row => ({ name, setting: value });
    expect(judged(looks, "settings", [setting("fsync", "on"), setting("recovery", "false")])).toEqual([]);
    const bad = [setting("fsync", "off"), setting("recovery", "true"), setting("encoding", "SQL_ASCII")];
    expect(judged(looks, "settings", bad)).toEqual(["error D204", "error D201", "warning D206"]);
    const table = { persistence: "p", policies: 0, options: null, live: "1000", dead: "200000", age: "1500000000" };
    expect(judged(looks, "table", [table])).toEqual(["warning D211", "warning D211"]);
    const open = {
      kind: "process",
      name: "7",
      account: "app",
      program: "shop",
      doing: "idle",
      seconds: "900",
      held: "9",
    };
    const prepared = { ...open, kind: "prepared", name: "x" };
    const slot = { ...open, kind: "slot", name: "s", account: null, seconds: null, held: "2000000" };
    expect(judged(looks, "transactions", [open, prepared, slot])).toEqual(Array(3).fill("warning D301"));
    expect(judged(looks, "connections", [{ used: "95", most: "100" }])).toEqual(["warning D306"]);
    expect(judged(looks, "connections", [{ used: "5", most: "100" }])).toEqual([]);
  });
});
