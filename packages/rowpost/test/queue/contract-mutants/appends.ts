/** Stores that break a promise about topics and appends. */
import { queueMonth } from "../../../src/message/queue-id.ts";
import { appending, appendingBy, appendingEach, beside, byHand, consuming, type Mutant, topics } from "./mutation.ts";

const ALTERED = "topics: more partitions take";

export const appendMutants: readonly Mutant[] = [
  [
    "a topic keeps the partitions it was given",
    topics(({ create }) => ({ create: (topic) => create({ ...topic, partitions: topic.partitions - 1 }) })),
    "topics: a new topic has",
  ],
  [
    "a topic that is there is told apart",
    topics(({ create }) => ({ create: async (topic) => (await create(topic)) || true })),
    "topics: a topic that is there",
  ],
  [
    "a topic is listed once",
    topics(({ list }) => ({ list: async (topic) => [...(await list(topic)), ...(await list(topic))] })),
    "topics: of two that make one topic",
  ],
  [
    "topics come in order",
    topics(({ list }) => ({ list: async (topic) => (await list(topic)).toReversed() })),
    "topics: are listed in the order",
  ],
  [
    "keys go to new partitions when nothing is unread",
    topics(({ list }) => ({
      list: async (topic) => (await list(topic)).map((each) => ({ ...each, keyedPartitions: 2 })),
    })),
    `${ALTERED} keys at once`,
  ],
  [
    "keys wait for unread messages",
    topics(({ list }) => ({
      list: async (topic) => (await list(topic)).map((each) => ({ ...each, keyedPartitions: each.partitions })),
    })),
    `${ALTERED} no keys while a group`,
  ],
  [
    "keys wait for redeliveries that hold them up",
    topics(({ alter }, _store, database) => ({
      async alter(change) {
        await byHand(database, `UPDATE message_redelivery SET ordering_key = NULL WHERE topic_id = '${change.topic}'`);
        await alter(change);
      },
    })),
    `${ALTERED} no keys while a redelivery`,
  ],
  [
    "a retention can be taken away",
    topics(({ alter }) => ({ alter: (change) => alter({ ...change, retentionMonths: change.retentionMonths ?? 3 }) })),
    "topics: the retention can be changed",
  ],
  [
    "a removed topic's tables go",
    topics(({ remove, makeMonths }) => ({
      async remove(topic) {
        const removed = await remove(topic);
        await makeMonths(topic, [202501]);
        return removed;
      },
    })),
    "topics: removing one takes",
  ],
  [
    "a topic whose name is alike is left alone",
    topics(({ remove }) => ({
      async remove(topic) {
        const removed = await remove(topic);
        await remove(`${topic}_b`);
        return removed;
      },
    })),
    "topics: one whose name is like",
  ],
  [
    "months come in order",
    topics(({ months }) => ({ months: async (topic) => (await months(topic)).toReversed() })),
    "topics: months that are missing",
  ],
  [
    "the month is the database's",
    topics(({ currentMonth }) => ({ currentMonth: async () => (await currentMonth()) - 100 })),
    "topics: the current month",
  ],
  [
    "bodies are stored byte for byte",
    appendingEach((message) => ({ ...message, body: message.body.replace("1.10", "1.1") })),
    "append: a message is stored with every field",
  ],
  [
    "an empty body stays empty",
    appendingEach((message) => (message.body === "" ? { ...message, body: "{}" } : message)),
    "append: what a message lacks",
  ],
  [
    "messages go to their partition",
    appendingEach((message) => ({ ...message, partition: 0 })),
    "append: ids say their partition",
  ],
  [
    "a large append is whole",
    appending((request) => ({ ...request, messages: request.messages.slice(0, 1_000) })),
    "append: many at once",
  ],
  [
    "an append is part of its transaction",
    beside((store, database) => ({
      beginAppend: (tx) => ({
        ...store.beginAppend(tx),
        append: (request) => database.transaction(async (own) => store.beginAppend(own).append(request)),
      }),
    })),
    ...["append: a transaction that rolls back", "append: nobody sees it", "sources: one of an append"],
    ...["order: whoever gets a later id", "order: an append goes on behind"],
  ],
  [
    "partitions do not wait for each other",
    appendingBy(async (call, request, tx) => {
      const text = `UPDATE message_topic_partition SET last_id = last_id WHERE topic_id = '${request.topic}'`;
      await tx.run({ name: "by hand", text, params: [] });
      return await call.append(request);
    }),
    "order: appends to another partition",
  ],
  [
    "what cannot be appended is told",
    appendingBy(async (call, request) => {
      const result = await call.append(request);
      return "ids" in result ? result : { ids: [] };
    }),
    ...[
      "append: a topic that is not there",
      "append: partitions that were chosen",
      "append: a month without its table",
    ],
  ],
  [
    "a delay is kept",
    appendingEach((message) => ({ ...message, delayMs: null, deliverAtMs: null })),
    "append: a delayed message",
  ],
  [
    "a relay's transaction rolls back",
    (store) => ({
      relayed: {
        ...store.relayed,
        async transaction(work) {
          let failure: Error | undefined;
          const result = await store.relayed.transaction(async (tx) => {
            try {
              return await work(tx);
            } catch (error) {
              failure = error as Error;
              return undefined as never;
            }
          });
          if (failure !== undefined) throw failure;
          return result;
        },
      },
    }),
    "append: a relay's transaction",
  ],
  [
    "ids have the database's time, and go on from the last one",
    appendingBy(async (call, request) => {
      const result = await call.append(request);
      return "ids" in result ? { ids: result.ids.map((id) => String(BigInt(id) - (7_200_000n << 22n))) } : result;
    }),
    ...[
      "order: ids have the database's time",
      "order: when the clock was ahead",
      "order: when the clock has gone ahead",
    ],
  ],
  [
    "source ids are known again",
    appendingEach((message) => ({ ...message, sourceId: null })),
    ...["sources: a second append", "sources: one that stands twice", "sources: of two that append"],
  ],
  [
    "source ids are the topic's own",
    (store, database) => {
      const seen = new Map<string, string>();
      return appendingBy(async (call, request) => {
        const known = seen.get(request.messages[0]?.sourceId ?? "");
        const result = known === undefined ? await call.append(request) : { ids: [known] };
        if ("ids" in result) seen.set(request.messages[0]?.sourceId ?? "", result.ids[0] ?? "");
        return result;
      })(store, database);
    },
    "sources: another topic",
  ],
  [
    "source ids are forgotten some at a time",
    (store) => ({
      relayed: {
        ...store.relayed,
        forgetSources: (request) => store.relayed.forgetSources({ ...request, limit: 100 }),
      },
    }),
    "sources: those that are old enough",
  ],
  [
    "a group begins where it is told",
    consuming(({ join }) => ({ join: () => join("start") })),
    "join: a new group begins",
  ],
  [
    "a known group stays where it is",
    consuming(({ join }, { topic, group }, _store, database) => ({
      async join(start) {
        await join(start);
        const rows = `topic_id = '${topic}' AND consumer_group_id = '${group}'`;
        await byHand(database, `UPDATE message_consumption SET next_message_id = 0 WHERE ${rows}`);
      },
    })),
    "join: a group that is known",
  ],
  [
    "a group's rows are made once",
    consuming(({ progress }) => ({
      progress: async (partitions) => [...(await progress(partitions)), ...(await progress(partitions))],
    })),
    "join: members that join at once",
  ],
  [
    "groups are compared byte for byte",
    (store) => ({
      consumption: (key, options) => store.consumption({ ...key, group: key.group.toLowerCase() }, options),
    }),
    "join: groups are apart",
  ],
  [
    "progress is of the partitions that were asked for",
    consuming(({ progress }) => ({ progress: () => progress([0, 1]) })),
    "progress: is told",
  ],
  [
    "a range has both of its ends",
    consuming(({ read }) => ({ read: (request) => read({ ...request, toId: String(BigInt(request.toId) - 1n) }) })),
    "read: brings a range",
  ],
  [
    "a long body is left out",
    consuming(({ read }) => ({ read: ({ bodyLimit: _limit, ...request }) => read(request) })),
    "read: leaves out bodies",
  ],
  [
    "a read keeps its limit",
    consuming(({ read }) => ({ read: (r) => read({ ...r, limit: 99 }) })),
    "read: brings no more",
  ],
  [
    "a month without a table is told",
    consuming(({ read }) => ({ read: async (request) => (await read(request)) ?? [] })),
    ...["read: a month without a table", "retention: dropping takes"],
  ],
  [
    "single ids are found in all months",
    consuming(({ readIds }) => ({
      readIds: (ids) => readIds(ids.filter((id) => queueMonth(id) === queueMonth(ids.at(-1) ?? "0"))),
    })),
    "read: single ids",
  ],
  [
    "a pause is told with the counters",
    consuming(({ counters }) => ({ counters: async () => ({ ...(await counters()), paused: false }) })),
    ...["counters: tell the last id", "groups: one that somebody pauses"],
  ],
  [
    "every partition has a counter",
    consuming(({ counters }) => ({
      async counters() {
        const { lastIds, paused } = await counters();
        return { paused, lastIds: new Map([...lastIds].filter(([partition, id]) => BigInt(id) !== BigInt(partition))) };
      },
    })),
    "counters: a partition without messages",
  ],
];
