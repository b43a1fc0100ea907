/**
 * `rowpost/testing`: contract suites and fault injection for tests of adapters and of programs that
 * use rowpost.
 */

export type { MemoryBroker, MemoryBrokerOptions, OutcomeHook, PublishedMessage } from "../brokers/memory.ts";
export { memory } from "../brokers/memory.ts";
export type { BrokerContractCase } from "./broker-contract/case.ts";
export type { BrokerCaseContext, PublishCallOptions } from "./broker-contract/context.ts";
export {
  brokerContract,
  caseTimeoutMs,
  runBrokerCase,
  runBrokerContract,
  skipReason,
} from "./broker-contract/contract.ts";
export type {
  BrokerFaults,
  BrokerHarness,
  BrokerNeed,
  ConsumeRequest,
  ContractTopics,
  ReceivedMessage,
} from "./broker-contract/harness.ts";
export type { ReceivedLog } from "./broker-contract/received-log.ts";
export { createReceivedLog } from "./broker-contract/received-log.ts";
export type { ContractReport, RunContractOptions } from "./contract-run.ts";
export type { ManualClock } from "./manual-clock.ts";
export { createManualClock } from "./manual-clock.ts";
export type { QueueBench, QueueInstance } from "./queue-contract/bench.ts";
export { openQueueBench } from "./queue-contract/bench.ts";
export type { QueueContractCase } from "./queue-contract/case.ts";
export type { AppendOptions, QueueCaseContext } from "./queue-contract/context.ts";
export { queueContract, queueSkipReason, runQueueCase, runQueueContract } from "./queue-contract/contract.ts";
export type { QueueStoreFeatures, QueueStoreHarness, QueueStoreNeed } from "./queue-contract/harness.ts";
export type { Member, MemberOptions, Settled } from "./queue-contract/member.ts";
export type { OldMessage } from "./queue-contract/old-months.ts";
export type { PoolKey, StoreBench, StoreInstance } from "./store-contract/bench.ts";
export { openStoreBench } from "./store-contract/bench.ts";
export type { StoreContractCase } from "./store-contract/case.ts";
export type {
  EditLocked,
  Interleaving,
  Ownership,
  OwnOptions,
  OwnTables,
  PutRow,
  PutValues,
  StoreCaseContext,
} from "./store-contract/context.ts";
export { runStoreCase, runStoreContract, storeContract, storeSkipReason } from "./store-contract/contract.ts";
export type { StoreFeatures, StoreHarness, StoreNeed, UserHandle } from "./store-contract/harness.ts";
export type { MuteDirection, TcpProxy, TcpProxyOptions } from "./tcp-proxy.ts";
export { createTcpProxy } from "./tcp-proxy.ts";
