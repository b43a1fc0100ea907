/**
 * The statements of examples/other-languages, taken out of the Java and the Go file and run with
 * parameters, as MyBatis and database/sql would: the rows are relayed as messages.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createRelayDatabase } from "../relay/bench-database.ts";
import { describeWithService } from "../services.ts";

const read = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../../examples/other-languages/${name}`, import.meta.url)), "utf8");

/** A statement with the values in the places of its parameters, in their order. */
const filled = (statement: string, place: RegExp, values: readonly string[]): string => {
  const left = [...values];
  const text = statement.replace(place, () => `'${left.shift()}'`);
  expect([left, place.test(text)]).toEqual([[], false]);
  return text;
};

/** The inserts of the mapper, by id. */
function mapperStatements(): Map<string, string> {
  const inserts = read("OrderMapper.xml").matchAll(/<insert id="(\w+)">([\s\S]*?)<\/insert>/g);
  return new Map([...inserts].map(([, id = "", text = ""]) => [id, text.trim()]));
}

/** The constants of the Go file, by name. */
function goStatements(): Map<string, string> {
  const constants = read("shop.go").matchAll(/^const (\w+) = `([^`]*)`/gm);
  return new Map([...constants].map(([, name = "", text = ""]) => [name, text]));
}

function statements(): string[] {
  const [java, go] = [mapperStatements(), goStatements()];
  expect([[...java.keys()], [...go.keys()]]).toEqual([
    ["insertOrder", "insertMessage", "insertWholeMessage"],
    ["insertOrder", "insertMessage"],
  ]);
  const [inJava, inGo] = [/#\{\w+\}/g, /\?/g];
  const whole = ["order.paid", "j1", "orders", "paid", "text/plain", '{"tenant":"7"}', "c1", "2026-01-01 08:00:00.000"];
  return [
    filled(java.get("insertOrder") ?? "", inJava, ["j1", "7"]),
    filled(java.get("insertMessage") ?? "", inJava, ["order.created", "j1", "orders", '{"id":"j1"}']),
    filled(java.get("insertWholeMessage") ?? "", inJava, whole),
    filled(go.get("insertOrder") ?? "", inGo, ["g1", "7"]),
    filled(go.get("insertMessage") ?? "", inGo, ["order.created", "g1", "orders", '{"id":"g1"}']),
  ];
}

describeWithService(["mariadb", "mysql9", "postgres"], "the INSERTs for Java and Go", ({ name }) => {
  it("are published", async () => {
    const database = await createRelayDatabase(name);
    try {
      await database.sql("CREATE TABLE orders (id VARCHAR(64) PRIMARY KEY, amount INT NOT NULL)");
      for (const statement of statements()) await database.sql(statement);
      const broker = memory();
      const { complete } = await createRelay({ database: database.connect(), broker }).drain();
      expect(complete).toBe(true);
      // One has an ordering key and a time, so there is no order among them.
      const published = new Map(broker.published().map((message) => [`${message.type} ${message.key}`, message]));
      expect(Object.fromEntries(published)).toMatchObject({
        "order.created j1": { body: '{"id":"j1"}', topic: "orders" },
        "order.paid j1": { body: "paid", contentType: "text/plain", orderingKey: "c1", headers: { tenant: "7" } },
        "order.created g1": { body: '{"id":"g1"}', topic: "orders" },
      });
      expect(published.size).toBe(3);
    } finally {
      await database.drop();
    }
  });
});
