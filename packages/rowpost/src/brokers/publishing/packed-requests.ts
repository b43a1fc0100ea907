/** What one request takes at most. */
export interface RequestBounds {
  readonly items: number;
  readonly bytes: number;
}

/**
 * Items in their order, as many in each request as it takes. One that is larger than a request may
 * be has its own: what that means is for the server to say.
 */
export function packedRequests<Item extends { readonly bytes: number }>(
  items: readonly Item[],
  most: RequestBounds,
): Item[][] {
  const requests: Item[][] = [];
  let bytes = 0;
  for (const item of items) {
    const request = requests.at(-1);
    if (request === undefined || request.length >= most.items || bytes + item.bytes > most.bytes) {
      requests.push([item]);
      bytes = item.bytes;
    } else {
      request.push(item);
      bytes += item.bytes;
    }
  }
  return requests;
}
