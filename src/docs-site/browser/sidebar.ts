const STORAGE_NAME = "petstore-docs-sidebar";

/** The sidebar keeps its position from page to page, and marks the section that is read. */
export function startSidebar(): void {
  const sidebar = document.querySelector<HTMLElement>("#navigation");
  if (sidebar === null) return;
  restorePosition(sidebar);
  markSections(sidebar);
  sidebar.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a") !== null && sidebar.matches(":popover-open"))
      sidebar.hidePopover();
  });
}

function restorePosition(sidebar: HTMLElement): void {
  try {
    sidebar.scrollTop = Number(sessionStorage.getItem(STORAGE_NAME) ?? 0);
    addEventListener("pagehide", () => sessionStorage.setItem(STORAGE_NAME, String(sidebar.scrollTop)));
  } catch {
    // A browser may forbid storage.
  }
  const current = sidebar.querySelector<HTMLElement>("[aria-current='page']");
  if (current !== null) bringIntoView(current, sidebar);
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
  if (links.length === 0) return;
  let isPlanned = false;
  const mark = () => {
    isPlanned = false;
    const index = headings.findLastIndex(
      (heading) => heading !== null && heading.getBoundingClientRect().top < innerHeight / 2,
    );
    for (const [i, link] of links.entries()) link.toggleAttribute("data-read", i === index);
  };
  addEventListener(
    "scroll",
    () => {
      if (!isPlanned) requestAnimationFrame(mark);
      isPlanned = true;
    },
    { passive: true },
  );
  mark();
}
