import { onAbort } from "../../runtime/abort.ts";
import { describeError } from "../../runtime/errors.ts";
import type { PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { oneAtATime } from "../publishing/one-at-a-time.ts";
import { queueTrouble } from "./carry.ts";
import type { SqsClient, SqsModule } from "./client.ts";
import { failureOf } from "./failures.ts";
import type { Settings } from "./options.ts";

export interface Queues {
  nameOf(topic: string): string | PublishFailed;
  known(topic: string): string | undefined;
  /** Its URL, or why there is none. Never rejects. */
  urlOf(topic: string): Promise<string | PublishFailed>;
  /** The queue is gone: looks it up again at the next use. */
  forget(topic: string): void;
}

export function createQueues(module: SqsModule, client: SqsClient, settings: Settings, ending: AbortSignal): Queues {
  const urls = new Map<string, string>();
  const shared = oneAtATime<string | PublishFailed>();

  function nameOf(topic: string): string | PublishFailed {
    try {
      const name = settings.queue(topic);
      return queueTrouble(topic, name) ?? name;
    } catch (error) {
      const reason = `the option queue fails for topic ${topic}: ${describeError(error)}`;
      return failed("message", "TOPIC_NOT_MAPPED", reason);
    }
  }

  async function ask(topic: string): Promise<string | PublishFailed> {
    const asked = new AbortController();
    const stopFollowing = onAbort(ending, () => asked.abort());
    try {
      const name = nameOf(topic);
      if (typeof name !== "string") return name;
      const input = { QueueName: name, QueueOwnerAWSAccountId: settings.account };
      const command = new module.GetQueueUrlCommand(input);
      const { QueueUrl } = (await client.send(command, { abortSignal: asked.signal })) as { readonly QueueUrl: string };
      urls.set(topic, QueueUrl);
      return QueueUrl;
    } catch (error) {
      const failure = failureOf(error, settings.label);
      // A lookup without an answer has handed nothing over.
      return failure.scope === "unknown" ? failed("connection", failure.code, failure.reason) : failure;
    } finally {
      stopFollowing();
    }
  }

  return {
    nameOf,
    known: (topic) => urls.get(topic),
    urlOf: (topic) => shared(topic, () => ask(topic)),
    forget: (topic) => void urls.delete(topic),
  };
}
