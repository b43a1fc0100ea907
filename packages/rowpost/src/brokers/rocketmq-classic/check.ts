import { BrokerError } from "../../runtime/errors.ts";
import type { Failure } from "../rocketmq/rules.ts";
import { type NameServers, nameServersLabel } from "./name-servers.ts";
import type { Settings } from "./options.ts";
import type { Primaries } from "./primaries.ts";

export interface Cluster {
  readonly settings: Settings;
  readonly nameServers: NameServers;
  readonly primaries: Primaries;
}

/** A name server knows a primary broker, and that lets us in. Throws {@link BrokerError}. */
export async function checkCluster({ settings, nameServers, primaries }: Cluster): Promise<void> {
  const addresses = await nameServers.primaries();
  if (!Array.isArray(addresses))
    throw unusable(addresses as Failure, settings, adviceFor(addresses as Failure, settings));
  let last: Failure | undefined;
  for (const address of addresses as readonly string[]) {
    const link = await primaries.link(address);
    if ("isUsable" in link) return;
    last = link;
  }
  if (last !== undefined) throw unusable(last, settings, brokerAdvice(last, settings));
  throw new BrokerError(
    "NO_BROKER",
    `RocketMQ at ${nameServersLabel(settings)} cannot be used: its name server knows no primary broker; start one with namesrvAddr at this address`,
    { retriable: true },
  );
}

function unusable({ code, reason }: Failure, settings: Settings, advice: string): BrokerError {
  const where = nameServersLabel(settings);
  const text = `RocketMQ at ${where} cannot be used: ${code}: ${reason}${advice === "" ? "" : `. ${advice}`}`;
  return new BrokerError(code, text, { retriable: code !== "UNAUTHORIZED" });
}

function adviceFor({ code }: Failure, { tls }: Settings): string {
  // The failure's own text has the advice.
  if (code === "REQUEST_CODE_NOT_SUPPORTED" || code === "UNAUTHORIZED") return "";
  const port =
    "Is the name server running, and is this its port (9876 by default; not 10911, a broker, nor 8081, the gRPC proxy)?";
  return tls === undefined
    ? `${port} One that takes TLS only needs the tls option.`
    : `${port} Does it speak TLS, with a certificate that tls.ca trusts?`;
}

/** The broker registers its own address, which may not be reachable from here. */
function brokerAdvice({ code }: Failure, { tls }: Settings): string {
  if (code === "UNAUTHORIZED") return "";
  const reach = "The broker's address is as it registered it (brokerIP1); is it the right one from here?";
  return tls === undefined
    ? reach
    : `${reach} Does it speak TLS, with a certificate for this address that tls.ca trusts?`;
}
