import { inspect } from "node:util";
import { expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import { targetOf } from "./target.ts";

test("an address is taken apart; its account becomes a header and stands in no label", () => {
  expect(targetOf("https://me:p%40ss@[::1]/in?key=1")).toEqual({
    secure: true,
    hostname: "::1",
    port: 443,
    path: "/in?key=1",
    label: "https://[::1]/in",
    authorization: { authorization: `Basic ${Buffer.from("me:p@ss").toString("base64")}` },
  });
});

test.each(["ftp://me:secret@h/", "http://me:%secret@h/", "http://me:secret@h:port/"])(
  "%s is refused without its password",
  (url) => {
    let thrown: unknown;
    try {
      targetOf(url);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ConfigurationError);
    expect(inspect(thrown)).not.toContain("secret");
  },
);
