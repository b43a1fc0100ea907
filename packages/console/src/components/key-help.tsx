import { PAGES } from "../address.ts";
import { words } from "../language/language.ts";
import { keys } from "../settings.ts";
import { Modal } from "./modal.tsx";

const GO_KEYS = {
  ...({ overview: "o", messages: "m", failures: "f", topics: "t" } as const),
  ...({ relays: "r", operations: "b", queue: "q", unconfirmed: "c", alerts: "a", doctor: "d", audit: "u" } as const),
};

export function KeyHelp({ close }: { readonly close: () => void }) {
  const { common, help, menu } = words.value;
  const lines: readonly (readonly [readonly string[], string])[] = [
    [["/"], help.search],
    [["j", "k"], help.rows],
    [["Enter"], help.enter],
    [["[", "]"], help.pages],
    ...PAGES.map((page) => [["g", GO_KEYS[page]], menu[page]] as const),
    [["p"], help.pause],
    [["?"], help.help],
    [["Esc"], help.escape],
  ];
  return (
    <Modal title={help.title} close={close}>
      <dl class="keys">
        {lines.map(([names, text]) => (
          <div key={names.join(" ")}>
            <dt>
              {names.map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <div class="dialog-end">
        <label class="check">
          <input
            type="checkbox"
            checked={keys.value === "on"}
            onChange={({ currentTarget }) => {
              keys.value = currentTarget.checked ? "on" : "off";
            }}
          />
          {help.on}
        </label>
        <form method="dialog">
          <button type="submit">{common.close}</button>
        </form>
      </div>
    </Modal>
  );
}
