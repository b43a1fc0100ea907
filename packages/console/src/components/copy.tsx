import { announce } from "../announce.ts";
import { words } from "../language/language.ts";

/** Copies a text; on plain http, without a clipboard, through a field. */
export function CopyButton({ text }: { readonly text: string }) {
  const { common } = words.value;
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const field = document.createElement("textarea");
      field.value = text;
      field.className = "sr-only";
      document.body.append(field);
      field.select();
      // Deprecated, but the only way without https.
      document.execCommand("copy");
      field.remove();
    }
    announce(common.copied);
  }
  return (
    <button type="button" class="small" onClick={() => void copy()}>
      {common.copy}
    </button>
  );
}

export function Command({ text }: { readonly text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <CopyButton text={text} />
    </span>
  );
}
