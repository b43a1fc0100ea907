import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import { addressLabel, parseUrl } from "./connection-options.ts";

test("a URL says where the server is and who we are", () => {
  expect(parseUrl("mysql://me:p%40ss@db.example:3307/shop")).toEqual({
    host: "db.example",
    port: 3307,
    user: "me",
    password: "p@ss",
    database: "shop",
  });
  expect(parseUrl("mariadb://root@[::1]")).toEqual({ host: "::1", port: 3306, user: "root" });
  expect(parseUrl("mysql://h/d?ssl=unverified&socket=/run/s.sock")).toMatchObject({
    ssl: { rejectUnauthorized: false },
    socketPath: "/run/s.sock",
  });
});

test("a file of authorities is read for each connection", () => {
  const folder = mkdtempSync(join(tmpdir(), "rowpost-ca-"));
  const file = join(folder, "ca.pem");
  try {
    writeFileSync(file, "one");
    const options = parseUrl(`mysql://h/d?ssl-ca=${file}&ssl-key=${file}`);
    expect({ ...options }).toMatchObject({ ssl: { ca: "one", key: "one" } });
    writeFileSync(file, "two");
    expect({ ...options }).toMatchObject({ ssl: { ca: "two", key: "two" } });
    expect({ ...parseUrl(`mysql://h/d?ssl=unverified&ssl-cert=${file}`) }).toMatchObject({
      ssl: { rejectUnauthorized: false, cert: "two" },
    });
    expect(() => parseUrl(`mysql://h/d?ssl=false&ssl-ca=${file}`)).toThrow(/ssl=false contradicts/);
  } finally {
    rmSync(folder, { recursive: true });
  }
  expect(() => parseUrl(`mysql://h/d?ssl-ca=${file}`)).toThrow(/ssl-ca file .*ca\.pem cannot be read/);
});

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("what cannot be meant is refused, without the password", () => {
  for (const url of [
    "postgres://u:secret@h/d",
    "mysql//u:secret@h",
    "mysql://u:secret@h/d?ssl=maybe",
    "mysql://u:secret@h/d?charset=gbk",
    "mysql://u@h/d?password=secret",
    "mysql://u:%secret@h/d",
    "mysql://u:secret@h:port/d",
  ]) {
    expect(() => parseUrl(url)).toThrow(ConfigurationError);
    // Formatted as in a log, with causes.
    expect(inspect(thrownBy(() => parseUrl(url)))).not.toContain("secret");
  }
});

test("the label holds no user and no password", () => {
  expect(addressLabel(parseUrl("mysql://me:secret@h:1/d"), "mysql")).toBe("mysql://h:1/d");
});
