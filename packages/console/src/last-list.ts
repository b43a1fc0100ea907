/** The list that a message was opened from, for going on to the one beside it. */
let ids: readonly string[] = [];

export function rememberList(shown: readonly string[]): void {
  ids = shown;
}

/** Ids beside this one in the list, as far as it is in it. */
export function besides(id: string): { readonly previous: string | undefined; readonly next: string | undefined } {
  const at = ids.indexOf(id);
  return at < 0 ? { previous: undefined, next: undefined } : { previous: ids[at - 1], next: ids[at + 1] };
}
