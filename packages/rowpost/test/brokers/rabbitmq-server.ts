/** A RabbitMQ of a test's own, to be killed, frozen and run out of memory. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { TEST_CERTIFICATE, TEST_KEY } from "./certificate.ts";

const run = promisify(execFile);
const SCRIPT = fileURLToPath(new URL("../../../../tools/services/rabbitmq", import.meta.url));

/** A server that a test started. */
export interface PrivateRabbitmq {
  readonly port: number;
  readonly tlsPort: number;
  readonly url: string;
  start(): Promise<void>;
  /** SIGKILL: a crash. */
  kill(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /**
   * Resolves when the queues that were made so far survive a kill. A declaration is answered when
   * the change itself is on disk; that it was committed may be written up to 2 s later, and a node
   * that is killed before takes it back when it starts (RabbitMQ 3.10, seen in one of 18 kills).
   */
  saveQueues(): Promise<void>;
  /** rabbitmqctl, which takes a second or two. */
  ctl(...words: readonly string[]): Promise<string>;
  /** Ends it for good and deletes its data. */
  remove(): Promise<void>;
}

/**
 * Starts a server in plaintext and, with {@link TEST_CERTIFICATE}, TLS, with more lines for its
 * `rabbitmq.conf`. Takes 4 to 10 s.
 */
export async function startPrivateRabbitmq(settings: readonly string[] = []): Promise<PrivateRabbitmq> {
  // The others of a server follow: + 1 for TLS, + 20,000 for its nodes and + 20,001 for its port
  // mapper.
  const port = 13_000 + 2 * (process.pid % 2_000);
  const folder = path.join(tmpdir(), `rowpost-test-rabbitmq-${process.pid}`);
  await run("mkdir", ["-p", folder]);
  const [certificate, key] = [path.join(folder, "cert.pem"), path.join(folder, "key.pem")];
  await writeFile(certificate, TEST_CERTIFICATE);
  await writeFile(key, TEST_KEY);
  const tls = [
    `listeners.ssl.default = 127.0.0.1:${port + 1}`,
    `ssl_options.certfile = ${certificate}`,
    `ssl_options.keyfile = ${key}`,
  ];
  const env = {
    ...process.env,
    RABBITMQ_PORT: String(port),
    RABBITMQ_DATA: path.join(folder, "data"),
    RABBITMQ_SETTINGS: [...tls, ...settings].join("\n"),
  };
  const verb = (name: string) => async (): Promise<void> => {
    await run(SCRIPT, [name], { env });
  };
  const server: PrivateRabbitmq = {
    port,
    tlsPort: port + 1,
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    start: verb("start"),
    kill: verb("kill"),
    freeze: verb("freeze"),
    thaw: verb("thaw"),
    saveQueues: async () => void (await server.ctl("eval", "mnesia:sync_log().")),
    ctl: async (...words) => (await run(SCRIPT, ["ctl", "-q", ...words], { env })).stdout,
    async remove() {
      await run(SCRIPT, ["reset"], { env });
      await run("rm", ["-rf", folder]);
    },
  };
  await server.start();
  return server;
}
