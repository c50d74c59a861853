import { COPY_TEXTS, copyText } from "../../pages/clipboard.ts";
import { capitalized } from "../../pages/format.ts";
import { readStored, writeStored } from "../../pages/storage.ts";
import { chooseTheme, chosenTheme } from "../../pages/theme.ts";
import { type Theme, THEMES } from "../../pages/themes.ts";

/** The URL of a path of the site, which a proxy may serve under a prefix. */
export function urlOf(path: string): string {
  const root = document.documentElement.dataset["root"] ?? "";
  return new URL(root + path.slice(1), document.baseURI).href;
}

/** A button that goes from the theme of the system to light, dark and back. */
export function startThemeSwitch(): void {
  const button = document.querySelector<HTMLButtonElement>("button.theme");
  if (button === null) return;
  button.hidden = false;
  const show = (theme: Theme) => {
    button.textContent = capitalized(theme);
    button.ariaLabel = `Theme: ${capitalized(theme)}`;
  };
  show(chosenTheme());
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(chosenTheme()) + 1) % THEMES.length] ?? "system";
    chooseTheme(next);
    show(next);
  });
}

const LANGUAGE = "petstore-language";

/** The language that a person chooses for one example is chosen for all, on every page of this browser. */
export function keepLanguage(): void {
  choose(readStored("localStorage", LANGUAGE));
  document.addEventListener("change", ({ target }) => {
    if (!(target instanceof HTMLInputElement) || target.closest(".example") === null) return;
    // The example that was clicked stays where it is, though those above it change their height.
    const before = target.getBoundingClientRect().top;
    choose(target.value);
    scrollBy(0, target.getBoundingClientRect().top - before);
    writeStored("localStorage", LANGUAGE, target.value);
  });
}

function choose(language: string | null): void {
  const inputs = document.querySelectorAll<HTMLInputElement>(".example input");
  for (const input of inputs) if (input.value === language) input.checked = true;
}

const SHOWN_MS = 2_000;

/** A button at each code block that copies its text. What try-it shows calls it too. */
export function addCopyButtons(): void {
  for (const block of document.querySelectorAll<HTMLElement>(".code:not(:has(.copy))")) {
    const code = block.querySelector("pre");
    if (code === null) continue;
    const properties = { type: "button", className: "copy", textContent: COPY_TEXTS.ready } as const;
    const button = Object.assign(document.createElement("button"), properties);
    button.addEventListener("click", () => void copy(button, code));
    block.append(button);
  }
}

async function copy(button: HTMLButtonElement, code: HTMLElement): Promise<void> {
  button.textContent = COPY_TEXTS[await copyText(code.textContent, code)];
  setTimeout(() => (button.textContent = COPY_TEXTS.ready), SHOWN_MS);
}

const SIDEBAR = "petstore-docs-sidebar";

/** The sidebar keeps its position from page to page, and marks the section that is read. */
export function startSidebar(): void {
  const sidebar = document.querySelector<HTMLElement>("#navigation");
  if (sidebar === null) return;
  sidebar.scrollTop = Number(readStored("sessionStorage", SIDEBAR) ?? 0);
  addEventListener("pagehide", () => writeStored("sessionStorage", SIDEBAR, String(sidebar.scrollTop)));
  const current = sidebar.querySelector<HTMLElement>("[aria-current='page']");
  if (current !== null) bringIntoView(current, sidebar);
  markSections(sidebar);
  sidebar.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a") !== null && sidebar.matches(":popover-open"))
      sidebar.hidePopover();
  });
}

/** `scrollIntoView` would scroll the page too. */
function bringIntoView(element: HTMLElement, frame: HTMLElement): void {
  const { top, bottom } = element.getBoundingClientRect();
  const bounds = frame.getBoundingClientRect();
  if (top < bounds.top || bottom > bounds.bottom) frame.scrollTop += top - bounds.top - bounds.height / 2;
}

/** The last heading above the middle of the screen is the one that is read. */
function markSections(sidebar: HTMLElement): void {
  const links = [...sidebar.querySelectorAll<HTMLAnchorElement>(".sections a")];
  const headings = links.map((link) => document.getElementById(link.hash.slice(1)));
  const mark = () => {
    const index = headings.findLastIndex(
      (heading) => heading !== null && heading.getBoundingClientRect().top < innerHeight / 2,
    );
    for (const [i, link] of links.entries()) link.toggleAttribute("data-read", i === index);
  };
  // Browsers send at most one event for each frame.
  addEventListener("scroll", mark, { passive: true });
  mark();
}
