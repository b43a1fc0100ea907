/**
 * One connection to one server. MQTT.js would reconnect and resend by itself, but that is the
 * relay's decision. So a broken connection is over and messages without a receipt are unknown. The
 * session ends with it (clean start, no expiry), so that a new one begins empty.
 *
 * Receipts are read from the packets, because the callbacks of `publish` do not report missing
 * subscribers.
 */
import { randomBytes } from "node:crypto";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { closeQuietly } from "../../runtime/deadline.ts";
import type { PublishFailed } from "../broker.ts";
import { closedFailure, failed } from "../publishing/failures.ts";
import { addressLabel, type ServerAddress } from "../settings/server-address.ts";
import { nodeTls } from "../settings/tls-options.ts";
import type { Wire } from "./carry.ts";
import type { MqttModule, Packet } from "./client.ts";
import { endedBy, failureOfConnect } from "./failures.ts";
import type { Settings } from "./options.ts";

/** The outcome of a message that was handed over: the server's PUBACK, or why none comes. */
export type Answer = { readonly packet: Packet; readonly receipt: string } | PublishFailed;

export interface Link {
  readonly over: PublishFailed | undefined;
  /** Not given to further calls: a deadline passed with a message in flight. */
  readonly isRetired: boolean;
  readonly maxPacketBytes: number;
  /** False: the server's Receive Maximum is reached. */
  hasRoom(): boolean;
  onRoom(callback: () => void): void;
  send(wire: Wire, settle: (answer: Answer) => void): void;
  retire(): void;
  /**
   * Registers a call; the returned function releases it. A retired link ends with its last user.
   */
  use(): () => void;
}

export interface Opening {
  /** Never rejects. */
  readonly link: Promise<Link | PublishFailed>;
  readonly closed: Promise<void>;
  /** Ends it in any state. Messages in flight become unknown. */
  end(): Promise<void>;
}

/** A packet length has four times seven bits, after five bytes. */
const LARGEST_PACKET = 0x0f_ff_ff_ff + 5;
/** In seconds. Detects a server that vanished while nothing is published. */
const KEEP_ALIVE = 15;

const CLOSED = closedFailure("MQTT");

export function openLink({ MqttClient }: MqttModule, address: ServerAddress, settings: Settings): Opening {
  const label = addressLabel(address);
  const name = settings.clientId ?? `rowpost-${randomBytes(6).toString("hex")}`;
  const pending = new Map<number, (answer: Answer) => void>();
  const waiting = new Set<() => void>();
  let receiveMaximum = 65_535;
  let over: PublishFailed | undefined;
  let cause: PublishFailed | undefined;
  let users = 0;
  const watch = setTimeout(() => {
    if (pending.size > 0) finish(failed("connection", "ACK_TIMEOUT", `${label} gave no receipt in time`));
  }, settings.ackTimeoutMs);

  // A separate timer, because not every version of the client reports why it gave up.
  const connecting = setTimeout(() => {
    finish(failed("connection", "CONNECT_TIMEOUT", `${label} accepted no MQTT connection in time`));
  }, settings.connectTimeoutMs);

  const socket = openSocket(address, settings);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const client = new MqttClient(() => socket, {
    protocolId: "MQTT",
    protocolVersion: 5,
    clean: true,
    clientId: name,
    ...settings.login,
    reconnectPeriod: 0,
    connectTimeout: 2 * settings.connectTimeoutMs,
    keepalive: KEEP_ALIVE,
  });

  function finish(failure: PublishFailed): void {
    if (over !== undefined) return;
    over = cause ?? failure;
    clearTimeout(watch);
    clearTimeout(connecting);
    client.end(true);
    socket.destroy();
    const open = [...pending.values()];
    pending.clear();
    for (const settle of open) settle({ ...over, scope: "unknown" });
    wake();
  }

  function wake(): void {
    const callbacks = [...waiting];
    waiting.clear();
    for (const callback of callbacks) callback();
  }

  function acknowledge(packet: Packet): void {
    const id = packet.messageId ?? 0;
    const settle = pending.get(id);
    if (settle === undefined) return;
    pending.delete(id);
    watch.refresh();
    settle({ packet, receipt: `${name}#${id}` });
    wake();
    endIfUnused();
  }

  function endIfUnused(): void {
    if (link.isRetired && users === 0 && pending.size === 0) finish(CLOSED);
  }

  const link = {
    get over() {
      return over;
    },
    isRetired: false,
    maxPacketBytes: LARGEST_PACKET,
    hasRoom: () => pending.size < receiveMaximum,
    onRoom: (callback: () => void) => void waiting.add(callback),
    send({ topic, payload, properties }: Wire, settle: (answer: Answer) => void) {
      if (pending.size === 0) watch.refresh();
      client.publish(topic, payload, { qos: 1, properties });
      pending.set(client.getLastMessageId(), settle);
    },
    retire() {
      link.isRetired = true;
      endIfUnused();
    },
    use() {
      users += 1;
      return () => {
        users -= 1;
        endIfUnused();
      };
    },
  };

  const opened = new Promise<Link | PublishFailed>((resolve) => {
    client.on("connect", ({ properties = {} }) => {
      clearTimeout(connecting);
      receiveMaximum = properties.receiveMaximum ?? receiveMaximum;
      link.maxPacketBytes = properties.maximumPacketSize ?? LARGEST_PACKET;
      if (properties.maximumQoS === 0) finish(endedBy(155, label));
      resolve(over ?? link);
    });
    client.on("close", () => {
      finish(failed("connection", "CONNECTION_LOST", `the connection to ${label} broke`));
      resolve(over ?? CLOSED);
    });
  });
  client.on("error", (error) => {
    cause ??= failureOfConnect(error, label);
  });
  client.on("disconnect", ({ reasonCode = 0, properties }) => {
    cause ??= endedBy(reasonCode, label, properties?.reasonString);
  });
  client.on("packetreceive", (packet) => {
    if (packet.cmd === "puback") acknowledge(packet);
  });

  return {
    link: opened,
    closed,
    async end() {
      // Says goodbye while the connection still works.
      if (over === undefined && pending.size === 0) client.end(false);
      else finish(CLOSED);
      await closeQuietly(closed);
      finish(CLOSED);
    },
  };
}

function openSocket({ host, port }: ServerAddress, { tls }: Settings): Socket {
  if (tls === undefined) return connectTcp({ host, port, noDelay: true });
  // Node.js sends no server name for an IP address, and then checks the certificate against the
  // host.
  const servername = tls.serverName ?? (isIP(host) === 0 ? host : undefined);
  return connectTls({ host, port, ...nodeTls(tls), ...(servername === undefined ? {} : { servername }) });
}
