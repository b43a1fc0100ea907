/** ElasticMQ for tests: a process of one's own, queues, and a reader. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteQueueCommand,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { SqsMessage } from "../../src/brokers/sqs/index.ts";
import { killProcess } from "../own-process.ts";
import { freePort } from "./redis-server.ts";

const run = promisify(execFile);
const SCRIPT = fileURLToPath(new URL("../../../../tools/services/elasticmq", import.meta.url));

/** ElasticMQ looks at neither. */
export const PLACE = {
  region: "elasticmq",
  credentials: { accessKeyId: "rowpost", secretAccessKey: "of good news" },
} as const;

/** A server process that can be killed, frozen and started again on its port. */
export interface PrivateElasticmq {
  readonly port: number;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends it and deletes its data. */
  remove(): Promise<void>;
}

export async function startElasticmq(): Promise<PrivateElasticmq> {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "rowpost-sqs-"));
  const env = { ...process.env, ELASTICMQ_PORT: String(port), ELASTICMQ_DATA: folder };
  const verb = (name: string) => async (): Promise<void> => {
    await run(SCRIPT, [name], { env });
  };
  const server = { start: verb("start"), stop: verb("stop"), freeze: verb("freeze"), thaw: verb("thaw") };
  await server.start();
  return {
    port,
    ...server,
    kill: () => killProcess(Number(readFileSync(join(folder, "pid"), "utf8"))),
    async remove() {
      await run(SCRIPT, ["reset"], { env });
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A name that no other test has. */
export function uniqueQueue(suffix = ""): string {
  return `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}${suffix}`;
}

/** Makes, reads and deletes queues. */
export interface Admin {
  create(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Takes what is there, at most `count`, and deletes it. Waits `waitSeconds` for one. */
  take(name: string, waitSeconds?: number): Promise<SqsMessage[]>;
  close(): void;
}

export function createAdmin(endpoint: string): Admin {
  const client = new SQSClient({ ...PLACE, endpoint, useQueueUrlAsEndpoint: false });
  const urlOf = (name: string): string => `${endpoint}/000000000000/${name}`;
  return {
    async create(name) {
      const attributes = name.endsWith(".fifo") ? { Attributes: { FifoQueue: "true" } } : {};
      await client.send(new CreateQueueCommand({ QueueName: name, ...attributes }));
    },
    async remove(name) {
      await client.send(new DeleteQueueCommand({ QueueUrl: urlOf(name) }));
    },
    async take(name, waitSeconds = 0) {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl: urlOf(name),
          MaxNumberOfMessages: 10,
          WaitTimeSeconds: waitSeconds,
          MessageAttributeNames: ["All"],
          MessageSystemAttributeNames: ["All"],
        }),
      );
      if (Messages.length === 0) return [];
      const Entries = Messages.map(({ ReceiptHandle }, place) => ({ Id: String(place), ReceiptHandle }));
      await client.send(new DeleteMessageBatchCommand({ QueueUrl: urlOf(name), Entries }));
      return Messages;
    },
    close: () => client.destroy(),
  };
}
