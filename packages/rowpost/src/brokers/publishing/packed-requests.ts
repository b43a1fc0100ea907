export interface RequestBounds {
  readonly items: number;
  readonly bytes: number;
}

/**
 * Items in order, as many in each request as fit. An item above the limit gets its own request, for
 * the server to judge.
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
