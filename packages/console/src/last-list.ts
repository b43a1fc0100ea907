/** The list from which a message was opened, for going to its neighbors. */
let ids: readonly string[] = [];

export function rememberList(shown: readonly string[]): void {
  ids = shown;
}

export function besides(id: string): { readonly previous: string | undefined; readonly next: string | undefined } {
  const at = ids.indexOf(id);
  return at < 0 ? { previous: undefined, next: undefined } : { previous: ids[at - 1], next: ids[at + 1] };
}
