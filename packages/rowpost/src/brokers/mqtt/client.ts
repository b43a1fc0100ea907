/** Structural types of the parts of `mqtt` (MQTT.js) that are used, and its loader. */
import type { Duplex } from "node:stream";
import { loadedPeer } from "../settings/peer.ts";

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

export function loadMqtt(): Promise<MqttModule> {
  const fits = (module: MqttModule): boolean => typeof module.MqttClient === "function";
  return loadedPeer(import("mqtt"), "mqtt", { neededFor: "rowpost/mqtt", range: "^5.0.0", fits });
}
