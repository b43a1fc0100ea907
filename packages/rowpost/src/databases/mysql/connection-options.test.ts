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
    // As a log shows it, with the causes.
    expect(inspect(thrownBy(() => parseUrl(url)))).not.toContain("secret");
  }
});

test("the label holds no user and no password", () => {
  expect(addressLabel(parseUrl("mysql://me:secret@h:1/d"))).toBe("mysql://h:1/d");
});
