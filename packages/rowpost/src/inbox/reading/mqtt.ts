/** MQTT: messages of MQTT.js. */
import { decodeMqttHeaders } from "../../brokers/mqtt/carry.ts";
import type { ReceivedMessage } from "../identity.ts";
import { identityIn } from "./headers.ts";

/** A PUBLISH packet of MQTT 5: the third argument of MQTT.js' `message` event. */
export interface MqttPacket {
  /** Its user properties hold the identity. */
  readonly properties?:
    | { readonly userProperties?: Readonly<Record<string, string | readonly string[]>> | undefined }
    | undefined;
  /** Topic of the packet. */
  readonly topic?: string | undefined;
}

/**
 * Identity of a message of MQTT.js: `client.on("message", (topic, body, packet) => …)`. `topic` is
 * the packet's. Throws `MissingIdentityError`.
 */
export function fromMqtt({ properties, topic }: MqttPacket): ReceivedMessage {
  return identityIn("MQTT", decodeMqttHeaders(properties?.userProperties), { topic });
}
