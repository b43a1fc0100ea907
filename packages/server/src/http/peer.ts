/** Where a request came from, which a `Request` does not say. */
export interface Peer {
  /** Of who asks, as the nearest proxy says; without one that of the socket. */
  readonly address: string | undefined;
  /** Of the other end of the connection. */
  readonly socket: string | undefined;
}

const peers = new WeakMap<Request, Peer>();

/** Notes it. */
export function withPeer(request: Request, peer: Peer | undefined): Request {
  if (peer !== undefined) peers.set(request, peer);
  return request;
}

/** The same for a request that is made of another one. */
export function samePeer(made: Request, of: Request): Request {
  return withPeer(made, peers.get(of));
}

/** The other end of the connection, whatever headers say. Undefined as {@link peerOf}. */
export function socketOf(request: Request): string | undefined {
  return peers.get(request)?.socket;
}

/** Undefined: nobody knows, as where a program of one's own calls `fetch`. */
export function peerOf(request: Request): string | undefined {
  return peers.get(request)?.address;
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
