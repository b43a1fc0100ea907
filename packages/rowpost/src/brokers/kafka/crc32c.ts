/** CRC-32C (Castagnoli), which Kafka requires for each batch. Node.js only has the other CRC-32. */

/** Reversed 0x1EDC6F41. */
const POLYNOMIAL = 0x82_f6_3b_78;
const TABLES = 4;

/** `SLICES[n * 256 + byte]`: the effect of a byte on the sum `n` bytes later. */
const SLICES: Int32Array = createSlices();

function createSlices(): Int32Array {
  const slices = new Int32Array(TABLES * 256);
  for (let byte = 0; byte < 256; byte += 1) {
    let sum = byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum & 1) === 0 ? sum >>> 1 : (sum >>> 1) ^ POLYNOMIAL;
    slices[byte] = sum;
  }
  for (let index = 256; index < slices.length; index += 1) {
    const before = slices[index - 256] ?? 0;
    slices[index] = (before >>> 8) ^ (slices[before & 0xff] ?? 0);
  }
  return slices;
}

/**
 * Checksum of `bytes[start..end)`, four bytes a step: 0.34 ms for 330 kB, against 0.79 byte by
 * byte.
 */
export function crc32c(bytes: Uint8Array, start: number, end: number): number {
  let sum = -1;
  let at = start;
  for (const last = end - 3; at < last; at += 4) {
    sum ^= byte(bytes, at) | (byte(bytes, at + 1) << 8) | (byte(bytes, at + 2) << 16) | (byte(bytes, at + 3) << 24);
    sum =
      slice(768 + (sum & 0xff)) ^
      slice(512 + ((sum >>> 8) & 0xff)) ^
      slice(256 + ((sum >>> 16) & 0xff)) ^
      slice(sum >>> 24);
  }
  for (; at < end; at += 1) sum = slice((sum ^ byte(bytes, at)) & 0xff) ^ (sum >>> 8);
  return ~sum >>> 0;
}

function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

function slice(index: number): number {
  return SLICES[index] ?? 0;
}
