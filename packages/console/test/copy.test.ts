/** A message that is sent anew with something changed, in Chromium. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AppBench, findingsOf, openFileApp } from "./bench.ts";

let app: AppBench;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ app, close } = await openFileApp());
});

afterAll(() => close());

async function failedOne(topic: string) {
  const [id = ""] = await app.put("failed", 1, { topic, reason: "HTTP_422: no such currency" });
  const [row] = await app.sql(`SELECT message_key, message_body FROM local_message WHERE id = ${id}`);
  return { id, key: String(row?.["message_key"]), body: String(row?.["message_body"]) };
}

describe("edit a copy", () => {
  it("shows what is different, sends it, sets the original aside, and leads from each to the other", async () => {
    const { body, id, key } = await failedOne("orders");
    const page = await app.open(`main/messages/${id}`, "admin");
    await page.getByRole("button", { name: "Edit a copy…" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("textbox", { name: "Key" }).inputValue()).toBe(`${key}~2`);
    const text = dialog.getByRole("textbox", { name: "Body of the copy" });
    expect(await text.inputValue()).toBe(body);
    await text.fill(body.replace("}", ',"currency":"CNY"}'));
    expect(await dialog.locator(".stretch ins").innerText()).toBe(',"currency":"CNY"');
    expect(await findingsOf(page)).toEqual([]);
    await dialog.getByRole("textbox", { name: "Headers of the copy" }).fill("tenant: acme\nx-url: http://a:1/b");
    await dialog.getByRole("textbox", { name: "Reason" }).fill("ticket 12");
    await dialog.getByRole("button", { name: "Send the copy" }).click();
    await page.getByRole("link", { name: `Copy of message ${id}` }).waitFor();
    const [copy] = await app.sql(
      `SELECT id, state, message_body, headers FROM local_message WHERE message_key = '${key}~2'`,
    );
    expect(copy).toMatchObject({ state: 0, message_body: body.replace("}", ',"currency":"CNY"}') });
    const headers = { tenant: "acme", "x-url": "http://a:1/b", "rowpost-copy-of": id };
    expect(JSON.parse(String(copy?.["headers"]))).toEqual(headers);
    await page.getByRole("link", { name: `Copy of message ${id}` }).click();
    await page.locator(".message-head .state-suspended").waitFor();
    await page.getByRole("link", { name: `Sent anew as message ${String(copy?.["id"])}` }).waitFor();
    expect(app.complaints.all).toEqual([]);
  });

  it("says that a key is taken, and keeps what was written", async () => {
    const [first, other] = [await failedOne("orders"), await failedOne("orders")];
    const page = await app.open(`main/messages/${first.id}`, "admin", { locale: "zh-CN" });
    await page.getByRole("button", { name: "改后另发…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "业务键" }).fill(other.key);
    await dialog.getByRole("textbox", { name: "副本的消息体" }).fill("{}");
    await dialog.getByRole("textbox", { name: "理由" }).fill("工单 12");
    await dialog.getByRole("button", { name: "发送副本" }).click();
    await dialog.getByRole("alert").waitFor();
    expect(await dialog.getByRole("textbox", { name: "副本的消息体" }).inputValue()).toBe("{}");
    expect(await app.sql(`SELECT state FROM local_message WHERE id = ${first.id}`)).toEqual([{ state: 3 }]);
    await dialog.getByRole("textbox", { name: "业务键" }).fill(`${first.key}~2`);
    await dialog.getByRole("button", { name: "发送副本" }).click();
    await page.getByRole("link", { name: `消息 ${first.id} 的副本` }).waitFor();
  });

  it("copies nothing of a message that has changed while the dialog was open", async () => {
    const { id } = await failedOne("orders");
    const page = await app.open(`main/messages/${id}`, "admin");
    await page.getByRole("button", { name: "Edit a copy…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Reason" }).fill("ticket 12");
    await app.sql(`UPDATE local_message SET lock_version = lock_version + 1 WHERE id = ${id}`);
    const rows = await app.sql("SELECT count(*) AS n FROM local_message");
    await dialog.getByRole("button", { name: "Send the copy" }).click();
    await dialog.getByText("The message has changed meanwhile").waitFor();
    expect(await app.sql("SELECT count(*) AS n FROM local_message")).toEqual(rows);
  });

  it("is an admin's", async () => {
    const { id } = await failedOne("orders");
    const page = await app.open(`main/messages/${id}`, "operator");
    const button = page.getByRole("button", { name: "Edit a copy…" });
    await button.waitFor();
    expect([await button.isDisabled(), await button.getAttribute("title")]).toEqual([true, "needs the role admin"]);
  });
});
