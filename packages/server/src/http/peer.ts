/** Origin of a request, which a `Request` lacks. */
export interface Peer {
  /** Client address from the nearest proxy; without one that of the socket. */
  readonly address: string | undefined;
  /** Of the other end of the connection. */
  readonly socket: string | undefined;
}

const peers = new WeakMap<Request, Peer>();

export function withPeer(request: Request, peer: Peer | undefined): Request {
  if (peer !== undefined) peers.set(request, peer);
  return request;
}

/** Copies it to a request made from another. */
export function samePeer(made: Request, of: Request): Request {
  return withPeer(made, peers.get(of));
}

/** The other end of the connection, whatever headers say. Undefined as {@link peerOf}. */
export function socketOf(request: Request): string | undefined {
  return peers.get(request)?.socket;
}

/** Undefined if unknown, as when a program calls `fetch`. */
export function peerOf(request: Request): string | undefined {
  return peers.get(request)?.address;
}

const LOOPBACK = /^(::ffff:)?127(\.\d+){3}$|^::1$/;
const OWN_HOST = /^(localhost|127(\.\d+){3}|\[::1\])$/;
const OF_PROXIES = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

/**
 * Made by a program on this machine: not through a proxy that reports itself, and by a host name
 * that no web page can give its own server.
 */
export function isFromThisMachine(request: Request): boolean {
  return (
    LOOPBACK.test(peerOf(request) ?? "") &&
    OWN_HOST.test(new URL(request.url).hostname) &&
    OF_PROXIES.every((name) => !request.headers.has(name))
  );
}
