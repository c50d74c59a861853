export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** The texts of a button that copies. */
export const COPY_TEXTS = {
  ready: "Copy",
  copied: "Copied ✓",
  failed: isMac ? "Press ⌘C" : "Press Ctrl-C",
} as const;

/**
 * Copies the text that an element shows. Returns whether the browser allows it; otherwise the text is selected and has
 * the focus, so that the keys copy it.
 */
export async function copyText(text: string, shown: HTMLElement): Promise<keyof typeof COPY_TEXTS> {
  try {
    await navigator.clipboard.writeText(text);
    return "copied";
  } catch {
    // Over plain HTTP a browser has a clipboard on the loopback address only. The older command copies a selection.
    const button = document.activeElement;
    shown.focus({ preventScroll: true });
    if (shown instanceof HTMLTextAreaElement) shown.select();
    else getSelection()?.selectAllChildren(shown);
    if (!document.execCommand("copy")) return "failed";
    if (button instanceof HTMLElement) button.focus({ preventScroll: true });
    return "copied";
  }
}
