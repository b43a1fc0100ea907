import type { OperationsStore } from "rowpost/admin";
import { expect, test } from "vitest";
import { createAccess } from "./access.ts";
import { createOneTimeLink } from "./link.ts";

const ASKED = "http://console.test/api/v1/session";

function accessOver(store: Partial<OperationsStore>, link = createOneTimeLink()) {
  const options = {
    users: [],
    tokens: [],
    link,
    authorize: undefined,
    proxy: undefined,
    isHttps: false,
    basePath: "/",
  };
  return createAccess({ ...options, publicUrl: undefined, linkUser: "ann", store: store as OperationsStore });
}

test("a session that is ended while another request reads it is not believed afterwards", async () => {
  let goOn: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const sessions = new Map<string, string>();
  let isHeld = false;
  const access = accessOver({
    openSession: async ({ hash, holder }) => void sessions.set(hash, holder),
    endSession: async (hash) => void sessions.delete(hash),
    async readSession(hash) {
      const holder = sessions.get(hash);
      if (isHeld) await held;
      return holder;
    },
  });
  const link = createOneTimeLink();
  const opened = await accessOver(
    { openSession: async ({ hash, holder }) => void sessions.set(hash, holder) },
    link,
  ).exchange(new Request(ASKED), link.token);
  const request = new Request(ASKED, { headers: { cookie: opened.cookie.split(";")[0] ?? "" } });
  isHeld = true;
  const reading = access.principalOf(request);
  await access.logout(request);
  goOn();
  await reading;
  expect(await access.principalOf(request)).toBeUndefined();
});

test("a link whose session could not be stored can be used again", async () => {
  const link = createOneTimeLink();
  let isAway = true;
  const access = accessOver(
    {
      async openSession() {
        if (isAway) throw new Error("the database is away");
      },
    },
    link,
  );
  const request = new Request(ASKED);
  await expect(access.exchange(request, link.token)).rejects.toThrow("away");
  isAway = false;
  expect((await access.exchange(request, link.token)).principal).toMatchObject({ name: "ann", role: "admin" });
  await expect(access.exchange(request, link.token)).rejects.toMatchObject({ code: "unauthenticated" });
});
