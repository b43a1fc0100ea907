import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteQueueCommand,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { fromSqs } from "rowpost/inbox";
import { type SqsOptions, sqsFromUrl, sqsOptionsFromUrl } from "rowpost/sqs";
import type { StartConsumer } from "./consumer.ts";
import type { Orders } from "./orders.ts";

const TOPIC = "rowpost_demo_orders";
const MOST_MESSAGES = 10;
const WAIT = 1;

export const startSqsConsumer: StartConsumer = async (url, { atEnd, orders, onTrouble, say }) => {
  const settings = sqsOptionsFromUrl(url);
  const broker = sqsFromUrl(url);
  atEnd(() => broker.close());
  // First, because its advice is better than the client's.
  await broker.check();
  const client = new SQSClient(clientOptions(settings));
  atEnd(() => client.destroy());
  const name = settings.queue?.(TOPIC) ?? TOPIC;
  say(`making the queue ${name}, until the demo ends …`);
  const fifo = name.endsWith(".fifo") ? { Attributes: { FifoQueue: "true" } } : {};
  const { QueueUrl = "" } = await client.send(new CreateQueueCommand({ QueueName: name, ...fifo }));
  atEnd(() => client.send(new DeleteQueueCommand({ QueueUrl })));
  const ending = new AbortController();
  const receiving = receive(client, QueueUrl, orders, ending.signal).catch((error: unknown) => {
    if (!ending.signal.aborted) onTrouble(`consumer: ${String(error)}`);
  });
  atEnd(() => {
    ending.abort();
    return receiving;
  });
  return { broker, topic: TOPIC, label: QueueUrl };
};

async function receive(client: SQSClient, QueueUrl: string, orders: Orders, signal: AbortSignal): Promise<void> {
  const request = { QueueUrl, MaxNumberOfMessages: MOST_MESSAGES, WaitTimeSeconds: WAIT };
  while (!signal.aborted) {
    const command = new ReceiveMessageCommand({ ...request, MessageAttributeNames: ["All"] });
    const { Messages = [] } = await client.send(command, { abortSignal: signal });
    if (Messages.length === 0) continue;
    await Promise.all(Messages.map((message) => orders.receive(() => fromSqs(message))));
    const Entries = Messages.map(({ ReceiptHandle }, place) => ({ Id: String(place), ReceiptHandle }));
    await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }
}

function clientOptions({ region, endpoint }: SqsOptions): { region?: string; endpoint?: string } {
  return { ...(region === undefined ? {} : { region }), ...(endpoint === undefined ? {} : { endpoint }) };
}
