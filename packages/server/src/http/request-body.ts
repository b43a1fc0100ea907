import { Problem } from "./problem.ts";

/** Throws a {@link Problem} for what is not JSON, or too large. */
export async function jsonBodyOf(request: Request, mostBytes = 1_048_576): Promise<unknown> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new Problem("not-json", "send the header Content-Type: application/json");
  if (Number(request.headers.get("content-length") ?? 0) > mostBytes) tooLarge(mostBytes);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    if (bytes > mostBytes) tooLarge(mostBytes);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) as unknown;
  } catch {
    throw new Problem("invalid-request", "the body is not JSON", {
      more: { errors: [{ pointer: "", message: "must be JSON" }] },
    });
  }
}

function tooLarge(mostBytes: number): never {
  throw new Problem("body-too-large", `a request has at most ${mostBytes} bytes`);
}
