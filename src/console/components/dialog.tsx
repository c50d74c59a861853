import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus inside, and Escape closes it; afterwards the focus is where it was. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      dialog.current?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  );
}
