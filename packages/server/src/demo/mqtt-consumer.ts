import { connectAsync, type IClientOptions } from "mqtt";
import { fromMqtt, type MqttPacket } from "rowpost/inbox";
import { type MqttOptions, mqttFromUrl, mqttOptionsFromUrl } from "rowpost/mqtt";
import type { StartConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";

/** Subscribes with QoS 1 before anything is published. */
export const startMqttConsumer: StartConsumer = async (url, { atEnd, environment, orders, onTrouble }) => {
  const settings = mqttOptionsFromUrl(url, environment);
  const broker = mqttFromUrl(url, environment);
  atEnd(() => broker.close());
  // First, because its advice is better than the client's.
  await broker.check();
  const client = await connectAsync(clientOptions(settings));
  atEnd(() => client.endAsync());
  client.on("error", (error) => onTrouble(`consumer: ${error.message}`));
  // Replaces the "message" event, so that the server gets the receipt after the order is handled.
  client.handleMessage = (packet, acknowledge) => {
    orders.receive(() => fromMqtt(packet as MqttPacket)).then(() => acknowledge(), acknowledge);
  };
  const topic = `${settings.prefix ?? ""}${TOPIC}`;
  await client.subscribeAsync(topic, { qos: 1 });
  const { host, port, protocol } = client.options;
  return { broker, topic: TOPIC, label: `${protocol}://${host}:${port} topic ${topic}` };
};

function clientOptions({ servers, user, password, tls }: MqttOptions): IClientOptions {
  const [first = ""] = [servers].flat().flatMap((text) => text.split(","));
  const { serverName, ...details } = typeof tls === "object" ? tls : {};
  const isSecure = tls !== undefined && tls !== false;
  const { hostname, port } = new URL(`mqtt://${first.trim().replace(/^mqtts?:\/\//i, "")}`);
  const given = Object.entries({ username: user, password, servername: serverName, ...details });
  return {
    protocol: isSecure ? "mqtts" : "mqtt",
    protocolVersion: 5,
    reconnectPeriod: 200,
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || (isSecure ? 8883 : 1883)),
    ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
  };
}
