/**
 * Frames of the classic protocol: length (4 bytes), header format and length (1 and 3), header,
 * body. All numbers are big-endian.
 *
 * Requests use a JSON header, which every server reads. Answers are in JSON unless the server runs
 * with `rocketmq.serialize.type=ROCKETMQ`.
 */

export interface Request {
  readonly code: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
}

/** A received frame: an answer, or (not `isAnswer`) a request of the server. */
export interface Frame {
  readonly code: number;
  readonly opaque: number;
  readonly isAnswer: boolean;
  readonly remark: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Netty refuses a larger frame on both sides. */
const MAX_FRAME_BYTES = 16_777_216;

const JSON_FORM = 0;
const BINARY_FORM = 1;
const ANSWER = 1;

export function encodeHead({ code, fields, body }: Request, opaque: number): Buffer {
  const header = JSON.stringify({
    code,
    // A language that every version knows; 4.x rejects a header with an unknown one.
    language: "OTHER",
    version: 0,
    opaque,
    flag: 0,
    extFields: fields,
    serializeTypeCurrentRPC: "JSON",
  });
  const length = Buffer.byteLength(header);
  const head = Buffer.allocUnsafe(8 + length);
  head.writeUInt32BE(4 + length + (body?.length ?? 0), 0);
  head.writeUInt32BE(length, 4);
  head.write(header, 8);
  return head;
}

/** Throws if the data is not the classic protocol. */
export interface FrameReader {
  read(chunk: Buffer): Frame[];
}

export function createFrameReader(): FrameReader {
  let chunks: Buffer[] = [];
  let length = 0;

  return {
    read(chunk) {
      const frames: Frame[] = [];
      chunks.push(chunk);
      length += chunk.length;
      while (length >= 4) {
        const first = joined();
        const size = first.readUInt32BE(0);
        if (size < 4 || size > MAX_FRAME_BYTES) throw new Error("what answers does not speak RocketMQ's protocol");
        if (length < 4 + size) break;
        frames.push(decodeFrame(first.subarray(4, 4 + size)));
        chunks = [first.subarray(4 + size)];
        length -= 4 + size;
      }
      return frames;
    },
  };

  function joined(): Buffer {
    const [first = Buffer.alloc(0)] = chunks;
    if (chunks.length === 1) return first;
    if (first.length >= 4 && length < 4 + first.readUInt32BE(0)) return first;
    const all = Buffer.concat(chunks, length);
    chunks = [all];
    return all;
  }
}

function decodeFrame(frame: Buffer): Frame {
  const form = frame.readUInt8(0);
  const end = 4 + (frame.readUInt32BE(0) & 0xff_ff_ff);
  if (end > frame.length) throw new RangeError("a header is longer than its frame");
  const header = frame.subarray(4, end);
  const body = frame.subarray(end);
  if (form === JSON_FORM) return { ...headerFromJson(header.toString()), body };
  if (form === BINARY_FORM) return { ...headerFromBytes(header), body };
  throw new RangeError(`a header has the unknown form ${form}`);
}

type Header = Omit<Frame, "body">;

function headerFromJson(text: string): Header {
  const header = JSON.parse(text) as Record<string, unknown>;
  const { code, opaque, flag, remark, extFields } = header;
  if (typeof code !== "number" || typeof opaque !== "number") throw new RangeError("a header has no code");
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries((extFields ?? {}) as Record<string, unknown>)) {
    if (typeof value === "string") fields[name] = value;
  }
  const isAnswer = (Number(flag) & ANSWER) !== 0;
  return { code, opaque, isAnswer, remark: typeof remark === "string" ? remark : "", fields };
}

/** Code (2), language (1), version (2), opaque (4), flag (4); remark and fields by length. */
function headerFromBytes(bytes: Buffer): Header {
  let at = 13;
  const text = (lengthBytes: 2 | 4): string => {
    const length = bytes.readUIntBE(at, lengthBytes);
    const start = at + lengthBytes;
    at = start + length;
    if (at > bytes.length) throw new RangeError("a header ends too soon");
    return bytes.toString("utf8", start, at);
  };
  const remark = text(4);
  const end = at + 4 + bytes.readUInt32BE(at);
  at += 4;
  const fields: Record<string, string> = {};
  while (at < end) {
    const name = text(2);
    fields[name] = text(4);
  }
  const isAnswer = (bytes.readInt32BE(9) & ANSWER) !== 0;
  return { code: bytes.readInt16BE(0), opaque: bytes.readInt32BE(5), isAnswer, remark, fields };
}
