/**
 * Who may do what: logins, TLS, rights, and servers on which JetStream is off or has no leader.
 * Each on a server of its own.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, nkeys } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import type { Broker, PublishResult } from "../../src/brokers/broker.ts";
import { type NatsOptions, nats, natsFromUrl } from "../../src/brokers/nats/index.ts";
import { describeWithService } from "../services.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./certificate.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { operatorWithUser } from "./nats-operator.ts";
import { createAdmin, type PrivateServer, startCluster, startPrivateServer } from "./nats-server.ts";

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serverWith(config: string, jetstream = true): Promise<PrivateServer> {
  const server = await startPrivateServer(config, jetstream);
  closers.push(() => server.remove());
  return server;
}

function brokerOn(server: PrivateServer, options: Partial<NatsOptions> = {}): Broker {
  return toClose(nats({ servers: server.address, ackTimeoutMs: 1000, ...options }));
}

function toClose(broker: Broker): Broker {
  closers.push(() => broker.close());
  return broker;
}

async function publish(broker: Broker, topic = "orders"): Promise<PublishResult | undefined> {
  return (await broker.publish([outgoing(`${topic}-1`, { topic })], noDeadline()))[0];
}

async function textFile(name: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "rowpost-nats-file-"));
  closers.push(() => rm(folder, { recursive: true }));
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

describeWithService("nats", "the NATS broker and its login", () => {
  test("by token, in code and from the environment", async () => {
    const server = await serverWith('authorization { token: "s3cret" }');
    await brokerOn(server, { token: "s3cret" }).check();
    await toClose(natsFromUrl(`nats://${server.address}`, { ROWPOST_NATS_TOKEN: "s3cret" })).check();
    const refused = brokerOn(server, { token: "hunter2" }).check();
    await expect(refused).rejects.toMatchObject({ code: "UNAUTHORIZED", retriable: false });
    await expect(refused).rejects.not.toThrow(/hunter2/);
    await expect(brokerOn(server).check()).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  });

  test("by nkey, in code and from a file", async () => {
    const pair = nkeys.createUser();
    const seed = new TextDecoder().decode(pair.getSeed());
    const server = await serverWith(`authorization { users: [ { nkey: ${pair.getPublicKey()} } ] }`);
    await brokerOn(server, { nkeySeed: seed }).check();
    const file = await textFile("relay.nk", `${seed}\n`);
    await toClose(natsFromUrl(`nats://${server.address}?nkey=${file}`, {})).check();
    const other = new TextDecoder().decode(nkeys.createUser().getSeed());
    await expect(brokerOn(server, { nkeySeed: other }).check()).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    await expect(brokerOn(server, { nkeySeed: "no seed" }).check()).rejects.not.toThrow(/no seed/);
  });

  test("by a credentials file of an operator's account", async () => {
    const { config, credentials } = operatorWithUser();
    const server = await serverWith(config);
    const file = await textFile("relay.creds", credentials);
    for (const broker of [
      brokerOn(server, { credentials }),
      toClose(natsFromUrl(`nats://${server.address}?creds=${file}`, {})),
    ]) {
      await broker.check();
    }
    const stranger = operatorWithUser().credentials;
    await expect(brokerOn(server, { credentials: stranger }).check()).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  });
});

describeWithService("nats", "the NATS broker and TLS", () => {
  test("trusts whom it was told to, under the right name, and speaks to nobody in the clear", async () => {
    const [cert, key] = [await textFile("cert.pem", TEST_CERTIFICATE), await textFile("key.pem", TEST_KEY)];
    const server = await serverWith(`tls { cert_file: "${cert}", key_file: "${key}" }`);
    const ca = TEST_CERTIFICATE;
    await brokerOn(server, { tls: { ca } }).check();
    await toClose(natsFromUrl(`tls://localhost:${server.port}?ca=${cert}`, {})).check();
    await toClose(natsFromUrl(`nats://${server.address}?tls=insecure`, {})).check();
    await expect(brokerOn(server, { tls: true }).check()).rejects.toThrow(/self-signed certificate.*tls\.ca trusts/);
    await expect(brokerOn(server, { tls: { ca, serverName: "mq.example" } }).check()).rejects.toThrow(/mq\.example/);
    const plain = await serverWith('authorization { token: "s3cret" }');
    const asked = brokerOn(plain, { tls: true, token: "s3cret" });
    await expect(asked.check()).rejects.toThrow(/does not support 'tls'/);
    expect(await publish(asked)).toMatchObject({ status: "failed", scope: "connection" });
  });
});

describeWithService("nats", "the NATS broker and its rights", () => {
  const user = (name: string, permissions: string): string =>
    `{ user: ${name}, password: pw, permissions: { ${permissions} } }`;

  const rights = (permissions: string): string =>
    `authorization { users: [ { user: admin, password: pw }, ${user("relay", permissions)} ] }`;

  async function serverWithRights(permissions: string): Promise<{ server: PrivateServer; broker: Broker }> {
    const server = await serverWith(rights(permissions));
    const admin = await createAdmin({ servers: server.address, user: "admin", pass: "pw" });
    closers.push(() => admin.close());
    await admin.createStream({ name: "S", subjects: ["orders", "billing", "_IN_NOT.>"] });
    return { server, broker: brokerOn(server, { user: "relay", password: "pw" }) };
  }

  test("a subject that it may not publish to pauses that topic, and no other", async () => {
    const { broker } = await serverWithRights('publish: { allow: ["orders", "$JS.API.>"] }');
    await broker.check();
    const batch = ["billing", "orders", "billing"].map((topic, index) => outgoing(`p-${index}`, { topic }));
    const results = await broker.publish(batch, noDeadline());
    const denied = { status: "failed", scope: "destination", code: "PERMISSION_DENIED" };
    expect(results).toMatchObject([denied, { status: "sent" }, denied]);
    expect(results[0]).toMatchObject({ reason: expect.stringContaining('"billing"') });
  });

  test("without the right to receive receipts nothing goes out; another inbox may be allowed", async () => {
    const { server, broker } = await serverWithRights('subscribe: { allow: ["_RELAY.>"] }');
    expect(await publish(broker)).toMatchObject({
      status: "failed",
      scope: "connection",
      code: "PERMISSION_DENIED",
      reason: expect.stringContaining("inboxPrefix"),
    });
    await expect(broker.check()).rejects.toThrow(/inboxPrefix/);
    const other = brokerOn(server, { user: "relay", password: "pw", inboxPrefix: "_RELAY" });
    // The first message in the stream: nothing of the one before got there.
    expect(await publish(other)).toEqual({ status: "sent", messageId: "S:1" });
  });

  test("a connection that was handed in takes messages again once its receipts are allowed again", async () => {
    const { server } = await serverWithRights('subscribe: { allow: ">" }');
    const connection = await connect({ servers: server.address, user: "relay", pass: "pw" });
    closers.push(() => connection.close());
    const broker = toClose(nats({ connection, ackTimeoutMs: 1000 }));
    expect(await publish(broker)).toMatchObject({ status: "sent" });
    await server.reload(rights('subscribe: { allow: "elsewhere" }'));
    // Behind the server's refusal.
    await connection.flush();
    expect(await publish(broker)).toMatchObject({ scope: "connection", code: "PERMISSION_DENIED" });
    await server.reload(rights('subscribe: { allow: ">" }'));
    expect(await publish(broker)).toMatchObject({ status: "sent" });
  });

  test("without the right to ask JetStream, a subject that nobody takes is held back instead of blamed", async () => {
    const { broker } = await serverWithRights('publish: { deny: ["$JS.API.>"] }');
    await broker.check();
    expect(await publish(broker)).toMatchObject({ status: "sent" });
    expect(await publish(broker, "nowhere")).toMatchObject({
      status: "failed",
      scope: "destination",
      code: "NO_RESPONDERS",
      reason: expect.stringContaining("$JS.API.STREAM.NAMES"),
    });
  });
});

describeWithService("nats", "the NATS broker without JetStream", () => {
  test("holds everything back and says what to do", async () => {
    const broker = brokerOn(await serverWith("", false));
    await expect(broker.check()).rejects.toMatchObject({
      name: "BrokerError",
      message: expect.stringContaining("-js"),
    });
    expect(await publish(broker)).toMatchObject({
      status: "failed",
      scope: "connection",
      code: "JETSTREAM_NOT_ENABLED",
    });
  });

  test("that has lost its leader counts nothing, and goes on when there is one again", async () => {
    const servers = await startCluster(3);
    closers.push(() => Promise.all(servers.map((server) => server.remove())));
    const [, ...others] = servers;
    const addresses = servers.map(({ address }) => address);
    const makeStream = async (): Promise<string> => {
      const admin = await createAdmin({ servers: addresses });
      const made = admin.createStream({ name: "R3", subjects: ["orders"], num_replicas: 3 }).then(() => "made", String);
      return await made.finally(() => void admin.close());
    };
    await expect.poll(makeStream, { timeout: 30_000, interval: 200 }).toBe("made");
    const broker = toClose(nats({ servers: addresses, ackTimeoutMs: 1000 }));
    const sent = async (): Promise<string | undefined> => (await publish(broker))?.status;
    await expect.poll(sent, { timeout: 30_000, interval: 100 }).toBe("sent");
    await Promise.all(others.map((server) => server.kill()));
    // Until the last one knows that it is alone, receipts are missing (unknown); then nothing takes
    // the subject, or what is left says so (10008).
    const scopes = new Set<string>();
    const away = async (): Promise<string | undefined> => {
      const result = await publish(broker);
      if (result?.status === "failed") scopes.add(result.scope);
      return result?.status === "failed" ? result.code : result?.status;
    };
    await expect.poll(away, { timeout: 40_000, interval: 500 }).toMatch(/NO_RESPONDERS|STREAM_AWAY|JETSTREAM_10008/);
    expect([...scopes]).not.toContain("message");
    await Promise.all(others.map((server) => server.start()));
    await expect.poll(sent, { timeout: 30_000, interval: 200 }).toBe("sent");
  }, 120_000);
});
