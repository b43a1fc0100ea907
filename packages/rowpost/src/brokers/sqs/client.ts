/** What is used of `@aws-sdk/client-sqs`, as structural types, and how it is loaded. */
import { loadedPeer } from "../settings/peer.ts";

export interface Entry {
  readonly Id: string;
  readonly MessageBody: string;
  readonly MessageAttributes: Readonly<Record<string, { readonly DataType: "String"; readonly StringValue: string }>>;
  readonly MessageGroupId?: string;
  readonly MessageDeduplicationId?: string;
}

export interface FailedEntry {
  readonly Id?: string | undefined;
  readonly Code?: string | undefined;
  readonly Message?: string | undefined;
  readonly SenderFault?: boolean | undefined;
}

export interface BatchAnswer {
  readonly Successful?: readonly { readonly Id?: string | undefined; readonly MessageId?: string | undefined }[];
  readonly Failed?: readonly FailedEntry[];
}

export interface SqsClient {
  send(command: unknown, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  destroy(): void;
}

export interface SqsModule {
  readonly SQSClient: new (options: Readonly<Record<string, unknown>>) => SqsClient;
  readonly GetQueueUrlCommand: new (input: object) => unknown;
  readonly ListQueuesCommand: new (input: object) => unknown;
  readonly SendMessageBatchCommand: new (input: {
    readonly QueueUrl: string;
    readonly Entries: readonly Entry[];
  }) => unknown;
}

export function loadSqs(): Promise<SqsModule> {
  const name = "@aws-sdk/client-sqs";
  return loadedPeer(import("@aws-sdk/client-sqs"), name, { neededFor: "rowpost/sqs", range: "^3.600.0" });
}
