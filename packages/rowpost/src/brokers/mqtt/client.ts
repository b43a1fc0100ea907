/** What is used of `mqtt` (MQTT.js), as structural types, and how it is loaded. */
import type { Duplex } from "node:stream";
import { loadedPeer } from "../settings/peer.ts";

/** A packet as the client gives it: of a CONNACK, a PUBACK or a DISCONNECT. */
export interface Packet {
  readonly cmd: string;
  readonly messageId?: number | undefined;
  readonly reasonCode?: number | undefined;
  readonly properties?:
    | {
        readonly maximumQoS?: number | undefined;
        readonly maximumPacketSize?: number | undefined;
        readonly receiveMaximum?: number | undefined;
        readonly assignedClientIdentifier?: string | undefined;
        readonly reasonString?: string | undefined;
      }
    | undefined;
}

export interface MqttClient {
  on(event: "connect" | "disconnect" | "packetreceive", listener: (packet: Packet) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "close", listener: () => void): unknown;
  publish(topic: string, payload: Buffer, options: { readonly qos: 1; readonly properties: object }): unknown;
  getLastMessageId(): number;
  end(force: boolean): unknown;
}

export interface MqttModule {
  readonly MqttClient: new (openStream: () => Duplex, options: Readonly<Record<string, unknown>>) => MqttClient;
}

/** Loads the client. Rejects with `MissingPeerError`. */
export function loadMqtt(): Promise<MqttModule> {
  const fits = (module: MqttModule): boolean => typeof module.MqttClient === "function";
  return loadedPeer(import("mqtt"), "mqtt", { neededFor: "rowpost/mqtt", range: "^5.0.0", fits });
}
