import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import { secretBytes, sign, verifyWebhook, webhookId } from "./signature.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const content = {
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  timestamp: "1614265330",
  body: Buffer.from('{"test": 2432232314}'),
};
const nowMs = 1_614_265_330_000;

function requestOf(signature: string) {
  const { id, timestamp, body } = content;
  return { headers: { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature }, body, nowMs };
}

describe("signature", () => {
  test("is the one that other implementations of Standard Webhooks make of the same message", () => {
    // Test vector of the specification's own libraries.
    expect(sign(content, [secretBytes(SECRET)])).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  test("while a secret is being changed, the old and the new one both verify", () => {
    const signature = sign(content, [secretBytes(SECRET), secretBytes("an older secret")]);
    expect(signature.split(" ")).toHaveLength(2);
    for (const secret of [SECRET, "an older secret"])
      expect(verifyWebhook({ ...requestOf(signature), secret })).toBe(true);
    expect(verifyWebhook({ ...requestOf(signature), secret: ["unknown", SECRET] })).toBe(true);
    expect(verifyWebhook({ ...requestOf(signature), secret: "unknown" })).toBe(false);
  });

  test("a changed body, id or time, an old request and a missing header do not verify", () => {
    const request = { ...requestOf(sign(content, [secretBytes(SECRET)])), secret: SECRET };
    expect(verifyWebhook(request)).toBe(true);
    expect(verifyWebhook({ ...request, body: '{"test": 2432232315}' })).toBe(false);
    for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature"]) {
      expect(verifyWebhook({ ...request, headers: { ...request.headers, [name]: "1614265331" } }), name).toBe(false);
      expect(verifyWebhook({ ...request, headers: { ...request.headers, [name]: undefined } }), name).toBe(false);
    }
    expect(verifyWebhook({ ...request, nowMs: nowMs + 299_000 })).toBe(true);
    expect(verifyWebhook({ ...request, nowMs: nowMs + 301_000 })).toBe(false);
    expect(verifyWebhook({ ...request, nowMs: nowMs - 301_000 })).toBe(false);
    expect(verifyWebhook({ ...request, nowMs: nowMs + 301_000, toleranceMs: 400_000 })).toBe(true);
  });

  test("another version of signature is passed over, and garbage is no error", () => {
    const valid = sign(content, [secretBytes(SECRET)]);
    expect(verifyWebhook({ ...requestOf(`v1a,AAAA ${valid}`), secret: SECRET })).toBe(true);
    expect(verifyWebhook({ ...requestOf(valid.replace("v1,", "v2,")), secret: SECRET })).toBe(false);
    expect(verifyWebhook({ ...requestOf("v1, , v1"), secret: SECRET })).toBe(false);
  });

  test("secrets that cannot be meant are refused", () => {
    for (const secret of ["", " ", "whsec_", "whsec_not base64!", "whsk_AAAA", "whpk_AAAA"]) {
      expect(() => secretBytes(secret), secret).toThrow(ConfigurationError);
    }
    expect(secretBytes("text").toString()).toBe("text");
  });
});

describe("webhook-id", () => {
  test("is readable, has no full stop, and is different for different messages", () => {
    expect(webhookId("order.created", "4711")).toBe("order%2Ecreated:4711");
    expect(webhookId("a:b", "c")).not.toBe(webhookId("a", "b:c"));
    expect(webhookId("订单", "1")).toBe("%E8%AE%A2%E5%8D%95:1");
    expect(webhookId("a", "\ud800")).toBe("a:%EF%BF%BD");
  });

  test("fits into 255 characters, by a digest where it must", () => {
    const long = webhookId("t".repeat(64), "钥".repeat(128));
    expect(long).toMatch(/^sha256-[\w-]{43}$/);
    expect(long).not.toBe(webhookId("t".repeat(64), "匙".repeat(128)));
    expect(webhookId("t".repeat(64), "k".repeat(128))).toHaveLength(193);
  });
});
