import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface MenuProps {
  /** For screen readers: "Actions for mobile app". */
  readonly label: string;
  readonly children: ComponentChildren;
}

/** The actions of a row. It closes when one was chosen, on Escape, and when the focus leaves it. */
export function Menu({ label, children }: MenuProps) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const onPress = (event: Event) => {
      if (event.target instanceof Node && details.current?.contains(event.target) !== true) close();
    };
    document.addEventListener("pointerdown", onPress);
    return () => document.removeEventListener("pointerdown", onPress);
  }, []);

  function close() {
    if (details.current) details.current.open = false;
  }

  return (
    <details
      ref={details}
      class="menu"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        close();
        details.current?.querySelector("summary")?.focus();
      }}
      onFocusOut={(event) => {
        if (event.relatedTarget instanceof Node && details.current?.contains(event.relatedTarget) !== true)
          close();
      }}
    >
      <summary aria-label={label}>⋯</summary>
      <div class="menu-items" onClick={close}>
        {children}
      </div>
    </details>
  );
}
