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

const LOOPBACK = /^(::ffff:)?127(\.\d+){3}$|^::1$/;
const OWN_HOST = /^(localhost|127(\.\d+){3}|\[::1\])$/;
const OF_PROXIES = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

/**
 * Asked by a program of this machine: not by way of a proxy that says so, and by a name that no
 * page on the web can give its own server.
 */
export function isFromThisMachine(request: Request): boolean {
  return (
    LOOPBACK.test(peerOf(request) ?? "") &&
    OWN_HOST.test(new URL(request.url).hostname) &&
    OF_PROXIES.every((name) => !request.headers.has(name))
  );
}
