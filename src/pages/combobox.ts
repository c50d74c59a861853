import { useEffect, useState } from "preact/hooks";

/**
 * What an input and its list of options need to be a combobox: the arrow keys choose an option, Enter opens it, and the
 * focus stays in the input. `id` is that of the list.
 */
export function useCombobox(id: string, count: number, open: (index: number) => void) {
  const [chosen, choose] = useState(0);
  // Options come and go while somebody types.
  const at = Math.max(0, Math.min(chosen, count - 1));
  const idOf = (index: number) => `${id}-${index}`;
  useEffect(() => document.getElementById(idOf(at))?.scrollIntoView({ block: "nearest" }), [at, count]);
  return {
    choose,
    input: {
      role: "combobox",
      autocomplete: "off",
      "aria-autocomplete": "list",
      "aria-controls": id,
      "aria-activedescendant": count === 0 ? undefined : idOf(at),
      onKeyDown(event: KeyboardEvent) {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step !== undefined) choose(count === 0 ? 0 : (at + step + count) % count);
        else if (event.key === "Enter" && count > 0) open(at);
        else if (event.key !== "Enter") return;
        event.preventDefault();
      },
    },
    list: { id, role: "listbox" },
    option: (index: number) => ({ id: idOf(index), role: "option", "aria-selected": index === at }) as const,
  } as const;
}
