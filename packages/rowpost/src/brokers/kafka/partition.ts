/** Partition of a key, computed as in Kafka's Java producer and kafkajs. */

export function partitionOf(key: Uint8Array, count: number): number {
  return (murmur2(key) & 0x7f_ff_ff_ff) % count;
}

const MIX = 0x5b_d1_e9_95;

/** Kafka's 32-bit murmur2, signed as in Java (`org.apache.kafka.common.utils.Utils.murmur2`). */
export function murmur2(data: Uint8Array): number {
  const { length } = data;
  const words = length & ~3;
  let hash = 0x97_47_b2_8c ^ length;
  for (let at = 0; at < words; at += 4) {
    let word = Math.imul(
      byte(data, at) | (byte(data, at + 1) << 8) | (byte(data, at + 2) << 16) | (byte(data, at + 3) << 24),
      MIX,
    );
    word = Math.imul(word ^ (word >>> 24), MIX);
    hash = Math.imul(hash, MIX) ^ word;
  }
  const rest = length - words;
  if (rest > 0) {
    if (rest === 3) hash ^= byte(data, words + 2) << 16;
    if (rest >= 2) hash ^= byte(data, words + 1) << 8;
    hash = Math.imul(hash ^ byte(data, words), MIX);
  }
  hash = Math.imul(hash ^ (hash >>> 13), MIX);
  return hash ^ (hash >>> 15);
}

function byte(data: Uint8Array, at: number): number {
  return data[at] ?? 0;
}
