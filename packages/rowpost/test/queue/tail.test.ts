/** Following a topic without a group. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Queue, TailOptions } from "../../src/queue/index.ts";
import { numbers } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

describeOnEach("following a topic", (make) => {
  let opened: OpenQueue;
  let queue: Queue;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    ({ queue } = opened);
  });
  afterEach(() => opened.close());

  async function seen(from: TailOptions["from"], limit: number): Promise<string[]> {
    const ids: string[] = [];
    for await (const { id } of queue.tail({ topic: "orders", from, limit })) ids.push(id);
    return ids;
  }

  it("begins at ids of 19 digits too, which no number holds", async () => {
    const ids = await queue.append(numbers(1));
    const ahead = BigInt(Date.UTC(2028, 0, 1) - 1_577_836_800_000) << 16n;
    await opened.place.query(`UPDATE message_topic_partition SET last_id = ${ahead}`);
    ids.push(...(await queue.append(numbers(3))));
    expect(ids.map((id) => id.length)).toEqual([18, 19, 19, 19]);
    for (const [index, id] of ids.entries()) expect(await seen({ id }, ids.length - index)).toEqual(ids.slice(index));
    expect(await seen({ at: new Date(Date.UTC(2028, 0, 1)) }, 3)).toEqual(ids.slice(1));
    for (const id of ["9223372036854775808", "01", "-1", "1e3", 5 as never]) {
      await expect(seen({ id }, 1)).rejects.toMatchObject({ code: "INVALID_ID" });
    }
  });
});
