/** `/` moves to the search of the page. */
export function startSearchShortcut(): void {
  document.addEventListener("keydown", (event) => {
    const search = document.querySelector<HTMLElement>("main input[type=search]");
    const isTyping =
      event.target instanceof Element && event.target.closest("input, select, textarea, dialog") !== null;
    if (event.key !== "/" || search === null || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    search.focus();
  });
}
