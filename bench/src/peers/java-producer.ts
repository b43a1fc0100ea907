/** RocketMQ's official Java client for the classic protocol, as a process that sends on request. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Brings the jars along. */
const TOOL = fileURLToPath(new URL("../../../tools/services/rocketmq4", import.meta.url));
const SOURCE = fileURLToPath(new URL("../../peers/rocketmq-classic/ProduceClassic.java", import.meta.url));

export interface JavaOrder {
  readonly nameServer: string;
  readonly topic: string;
  readonly messages: number;
  readonly batch: number;
  /** Each waits for its answer. */
  readonly threads: number;
  readonly body: string;
}

export interface JavaProducer {
  /** Sends all; times are its own. */
  send(): Promise<{ readonly wallMs: number; readonly cpuMs: number }>;
  close(): Promise<void>;
}

export async function startJavaProducer(order: JavaOrder): Promise<JavaProducer> {
  const classPath = execFileSync(TOOL, ["classpath"], { encoding: "utf8" }).trim();
  const { batch, body, messages, nameServer, threads, topic } = order;
  const words = [nameServer, topic, String(messages), String(batch), String(threads), body];
  const java = ["-Xmx256m", "-Djava.net.preferIPv4Stack=true", "-Drocketmq.client.logLevel=ERROR"];
  const child = spawn("java", [...java, "-cp", classPath, SOURCE, ...words], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => {
    for (;;) {
      const { done, value } = await lines.next();
      if (done === true) throw new Error("the Java producer has ended");
      // The client may print its own warnings.
      if (value === "ready" || value.startsWith("{")) return value;
    }
  };
  await nextLine();
  return {
    async send() {
      child.stdin.write("\n");
      return JSON.parse(await nextLine()) as { wallMs: number; cpuMs: number };
    },
    async close() {
      const ended = once(child, "exit");
      child.stdin.end();
      await ended;
    },
  };
}
