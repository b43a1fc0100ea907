import { describe, expect, test } from "vitest";
import { parseDatabaseUrl } from "./database-url.ts";

describe("--database", () => {
  test("the password comes from the variable where the URL has none, and is in no label", () => {
    const environment = { ROWPOST_DATABASE_PASSWORD: "p@ss/word" };
    expect(parseDatabaseUrl("mysql://app@db:3307/shop", environment)).toEqual({
      engine: "mysql",
      url: "mysql://app:p%40ss%2Fword@db:3307/shop",
      label: "mysql://db:3307/shop",
      name: "shop",
      password: "p@ss/word",
    });
    expect(parseDatabaseUrl("postgresql://app:own@db/shop", environment)).toMatchObject({
      engine: "postgres",
      password: "own",
      label: "postgresql://db/shop",
    });
  });

  test("SQLite files, relative and in the form of other tools", () => {
    expect(parseDatabaseUrl("sqlite:///data/a.db", {})).toMatchObject({ engine: "sqlite", url: "/data/a.db" });
    expect(parseDatabaseUrl("sqlite:a.db", {}).url).toBe(`${process.cwd()}/a.db`);
  });
});
