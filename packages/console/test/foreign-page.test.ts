/**
 * A page of another port of this machine, in the browser of somebody who is logged in: it is of the
 * same site, so the browser sends the session with all that it asks for.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type AppBench, openFileApp } from "./bench.ts";

let app: AppBench;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ app, close } = await openFileApp());
});

afterAll(() => close());

/** Tries all that a page can make a browser ask for; tells what each try came to. */
function attackPage(api: string, message: string): string {
  const suspend = JSON.stringify({ scope: "topic", value: "orders", reason: "a foreign page" });
  return `<!doctype html><title>foreign</title>
    <iframe name="answers"></iframe>
    <iframe id="console" src="${new URL("/main/overview", api).href}"></iframe>
    <img src="${api}/s/main/messages/${message}/actions/retry">
    <form method="post" enctype="text/plain" target="answers" action="${api}/s/main/suspensions">
      <input name='${suspend.slice(0, -1)},"more":"' value='"}'>
    </form>
    <script>
      const told = [];
      const attempt = (type, mode) =>
        fetch("${api}/s/main/suspensions", {
          method: "POST", mode, credentials: "include", headers: { "content-type": type }, body: ${JSON.stringify(suspend)},
        }).then(({ status, type }) => told.push(type + " " + status), () => told.push("refused by the browser"));
      const read = fetch("${api}/s/main/messages", { credentials: "include" })
        .then((answer) => answer.text(), () => "")
        .then((text) => told.push("read " + text.length));
      document.forms[0].submit();
      addEventListener("load", async () => {
        await Promise.all([attempt("application/json", "cors"), attempt("text/plain", "no-cors"), read]);
        document.title = JSON.stringify(told.sort());
      });
    </script>`;
}

it("changes nothing and reads nothing, though the browser sends the session", async () => {
  const [id = ""] = await app.put("failed", 1, { topic: "orders", reason: "HTTP_500: no" });
  const page = await app.open("main/overview", "admin");
  const foreign = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html").end(attackPage(`${app.address}api/v1`, id));
  });
  await new Promise<void>((resolve) => foreign.listen(0, "127.0.0.1", resolve));
  try {
    const other = await page.context().newPage();
    await other.goto(`http://127.0.0.1:${(foreign.address() as AddressInfo).port}/`);
    await other.waitForFunction(() => document.title.startsWith("["));
    expect(JSON.parse(await other.title())).toEqual(["read 0", "refused by the browser", "refused by the browser"]);
    // The form and the fetch that needs no leave came to the server, as what the admin asked for.
    const denied = "SELECT author, reason FROM local_message_audit WHERE result = 'denied' ORDER BY id";
    await expect.poll(async () => (await app.sql(denied)).length).toBe(2);
    for (const { author, reason } of await app.sql(denied)) {
      expect(author).toBe("admin");
      expect(reason).toMatch(/^cross-origin: /);
    }
    expect(await other.frameLocator("#console").locator("#app > *").count()).toBe(0);
    expect(await app.sql(`SELECT state FROM local_message WHERE id = ${id}`)).toEqual([{ state: 3 }]);
    expect(await app.sql("SELECT COUNT(*) AS n FROM local_message_suspension")).toEqual([{ n: 0 }]);
  } finally {
    foreign.closeAllConnections();
    foreign.close();
  }
});
