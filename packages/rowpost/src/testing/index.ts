/**
 * `rowpost/testing`: the contract of brokers, a manual clock, and a proxy that breaks connections.
 * The in-memory broker is `memory` of `rowpost`.
 */

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
  ArrivedMessage,
  BrokerFaults,
  BrokerHarness,
  BrokerNeed,
  ConsumeRequest,
  ContractTopics,
} from "./broker-contract/harness.ts";
export type { ReceivedLog } from "./broker-contract/received-log.ts";
export { createReceivedLog } from "./broker-contract/received-log.ts";
export type { ContractReport, RunContractOptions } from "./contract-run.ts";
export type { ManualClock } from "./manual-clock.ts";
export { createManualClock } from "./manual-clock.ts";
export type { MuteDirection, TcpProxy, TcpProxyOptions } from "./tcp-proxy.ts";
export { createTcpProxy } from "./tcp-proxy.ts";
