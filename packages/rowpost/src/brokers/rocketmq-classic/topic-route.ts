/** Parses a topic's route from a name server: its writable queues and their brokers. */

export interface Queue {
  readonly broker: string;
  readonly address: string;
  readonly id: number;
}

export interface TopicRoute {
  readonly queues: readonly Queue[];
}

interface RouteAnswer {
  readonly orderTopicConf?: string | null;
  readonly queueDatas?: readonly QueueData[] | null;
  readonly brokerDatas?: readonly BrokerData[] | null;
}

interface QueueData {
  readonly brokerName: string;
  readonly writeQueueNums: number;
  readonly perm: number;
}

interface BrokerData {
  readonly brokerName: string;
  /** By broker id; the primary has 0. */
  readonly brokerAddrs?: Readonly<Record<string, string>> | null;
}

const WRITABLE = 2;

/** Throws for invalid JSON. */
export function topicRouteFrom(body: Buffer): TopicRoute {
  const route = parseJavaJson(body.toString()) as RouteAnswer;
  const primaries = new Map<string, string>();
  for (const { brokerName, brokerAddrs } of route.brokerDatas ?? []) {
    const address = brokerAddrs?.["0"];
    if (address !== undefined) primaries.set(brokerName, address);
  }
  const queues: Queue[] = [];
  for (const [broker, count] of writable(route)) {
    const address = primaries.get(broker);
    if (address === undefined) continue;
    for (let id = 0; id < count; id += 1) queues.push({ broker, address, id });
  }
  return { queues };
}

/** Queues of each broker: as an administrator fixed them for an ordered topic, or as reported. */
function writable({ orderTopicConf, queueDatas }: RouteAnswer): (readonly [broker: string, count: number])[] {
  if (orderTopicConf) {
    return orderTopicConf.split(";").map((part) => {
      const [broker = "", count = "0"] = part.split(":");
      return [broker, Number(count)] as const;
    });
  }
  return (queueDatas ?? [])
    .filter(({ perm }) => (perm & WRITABLE) !== 0)
    .map(({ brokerName, writeQueueNums }) => [brokerName, writeQueueNums] as const)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

/** `host:port` of each broker's primary. Throws for invalid JSON. */
export function primariesFrom(body: Buffer): string[] {
  const { brokerAddrTable } = parseJavaJson(body.toString()) as {
    readonly brokerAddrTable?: Readonly<Record<string, BrokerData>> | null;
  };
  return Object.values(brokerAddrTable ?? {}).flatMap(({ brokerAddrs }) => brokerAddrs?.["0"] ?? []);
}

/**
 * Parses JSON with unquoted numbers as names, as in maps by broker id from name servers before
 * 4.9.4 and in cluster answers of all versions.
 */
function parseJavaJson(text: string): unknown {
  return JSON.parse(
    text.replace(
      /"(?:[^"\\]|\\.)*"|([{,]\s*)(-?\d+)(\s*:)/g,
      (whole, before?: string, name?: string, after?: string) =>
        name === undefined ? whole : `${before}"${name}"${after}`,
    ),
  );
}

/** The queue of a key, as `SelectMessageQueueByHash` of the Java client selects it. */
export function queueOf(orderingKey: string, queues: readonly Queue[]): Queue | undefined {
  let hash = 0;
  for (let index = 0; index < orderingKey.length; index += 1)
    hash = (Math.imul(31, hash) + orderingKey.charCodeAt(index)) | 0;
  return queues[Math.abs(hash % queues.length)];
}
