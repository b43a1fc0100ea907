import { findError, systemCode, wordsOf } from "./driver.ts";
import type { Fault } from "./failures.ts";

export function faultOf(error: unknown, unsent: boolean): Fault {
  const answer = findError(error, ({ name, code, type, message }): Fault | undefined =>
    name === "KafkaJSProtocolError" && typeof code === "number"
      ? { kind: "answer", code, name: String(type), text: String(message) }
      : undefined,
  );
  if (answer !== undefined) return answer;
  const denied = findError(error, ({ name, message }): Fault | undefined =>
    name === "KafkaJSSASLAuthenticationError" ? { kind: "denied", text: String(message) } : undefined,
  );
  if (denied !== undefined) return denied;
  const system = systemCode(error);
  const name = findError(error, (each) => CODE_OF_ERROR[String(each.name)]);
  const code = system?.code ?? name ?? "KAFKAJS";
  return { kind: unsent ? "unreachable" : "lost", code, text: wordsOf(error) };
}

const CODE_OF_ERROR: Readonly<Record<string, string>> = {
  KafkaJSRequestTimeoutError: "REQUEST_TIMEOUT",
  KafkaJSConnectionClosedError: "CONNECTION_CLOSED",
  KafkaJSConnectionError: "CONNECTION",
  KafkaJSLockTimeout: "CONNECT_TIMEOUT",
};
