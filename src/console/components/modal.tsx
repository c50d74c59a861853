import type { ComponentChildren, VNode } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { consoleState, updateState } from "../state.ts";

/** Opens a dialog over the page, in place of the one before, until the page is left. */
export const openDialog = (dialog: () => VNode): void => updateState({ dialog });
export const closeDialog = (): void => updateState({ dialog: undefined });

export interface DialogButtonProps {
  readonly dialog: () => VNode;
  readonly class?: string | undefined;
  readonly disabled?: boolean | undefined;
  readonly children: ComponentChildren;
}

export function DialogButton({ dialog, ...button }: DialogButtonProps) {
  return <button type="button" {...button} onClick={() => openDialog(dialog)} />;
}

export interface ModalProps {
  readonly title: string;
  /** What it is about, after the title. */
  readonly name?: string | undefined;
  /** `wide` has room for what is copied; `palette` stays where it is, however high it gets. */
  readonly class?: "wide" | "palette-dialog";
  readonly children: ComponentChildren;
  readonly onCancel: () => void;
}

/**
 * A modal dialog. The browser keeps the focus inside, and Escape cancels it; afterwards the focus is where it was.
 * While the page to sign in is shown, it is closed.
 */
export function Modal({ title, name, onCancel, children, ...props }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const { isSignedIn } = consoleState;
  useLayoutEffect(() => {
    if (isSignedIn) dialog.current?.showModal();
    return () => dialog.current?.close();
  }, [isSignedIn]);
  return (
    <dialog
      ref={dialog}
      class={props.class}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onCancel();
      }}
    >
      <h2 id={titleId} class="clamp">
        {title} {name && <bdi>{name}</bdi>}
      </h2>
      {children}
    </dialog>
  );
}
