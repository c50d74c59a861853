/** A button at each code block within `root` that copies its text. What try-it shows calls it too. */
export function addCopyButtons(root: ParentNode): void {
  for (const block of root.querySelectorAll<HTMLElement>(".code:not([data-copy])")) {
    const code = block.querySelector("pre");
    if (code === null) continue;
    block.dataset["copy"] = "";
    block.append(copyButton(() => code.textContent));
  }
}

const SHOWN_MS = 2_000;

function copyButton(text: () => string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => void copy(button, text()));
  return button;
}

async function copy(button: HTMLButtonElement, text: string): Promise<void> {
  button.textContent = await navigator.clipboard.writeText(text).then(
    () => "Copied",
    // Without HTTPS, browsers allow it on this machine's own addresses alone.
    () => (copySelected(text) ? "Copied" : "Select and copy"),
  );
  setTimeout(() => (button.textContent = "Copy"), SHOWN_MS);
}

function copySelected(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}
