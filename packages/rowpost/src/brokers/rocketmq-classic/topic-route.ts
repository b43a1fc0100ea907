/** What a name server tells of a topic: the queues that take messages, and where they are. */

/** A queue of a topic, at its primary broker. */
export interface Queue {
  readonly broker: string;
  /** `host:port` of that broker's primary, as the name server tells it. */
  readonly address: string;
  readonly id: number;
}

export interface TopicRoute {
  /** Those that can be written to, in the order in which the Java client has them. */
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
  /** By the broker's id; the primary has 0. */
  readonly brokerAddrs?: Readonly<Record<string, string>> | null;
}

/** The bit of `perm` that lets messages in. */
const WRITABLE = 2;

/** Throws for what is no JSON. */
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

/** Queues of each broker: as an administrator fixed them for an ordered topic, or as they are. */
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

/** `host:port` of each broker's primary. Throws for what is no JSON. */
export function primariesFrom(body: Buffer): string[] {
  const { brokerAddrTable } = parseJavaJson(body.toString()) as {
    readonly brokerAddrTable?: Readonly<Record<string, BrokerData>> | null;
  };
  return Object.values(brokerAddrTable ?? {}).flatMap(({ brokerAddrs }) => brokerAddrs?.["0"] ?? []);
}

/**
 * JSON in which numbers may stand as names, without quotation marks: so a map by broker id comes
 * from name servers before 4.9.4, and a cluster's from all.
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

/** The queue of a key: the one that `SelectMessageQueueByHash` of the Java client takes. */
export function queueOf(orderingKey: string, queues: readonly Queue[]): Queue | undefined {
  let hash = 0;
  for (let index = 0; index < orderingKey.length; index += 1)
    hash = (Math.imul(31, hash) + orderingKey.charCodeAt(index)) | 0;
  return queues[Math.abs(hash % queues.length)];
}
