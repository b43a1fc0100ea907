/** Where a request came from, which a `Request` does not say. */
const peers = new WeakMap<Request, string>();

/** Notes it. */
export function withPeer(request: Request, address: string | undefined): Request {
  if (address !== undefined) peers.set(request, address);
  return request;
}

/** Undefined: nobody knows, as where a program of one's own calls `fetch`. */
export function peerOf(request: Request): string | undefined {
  return peers.get(request);
}
