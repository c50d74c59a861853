const STORAGE_NAME = "petstore-language";

/** The language that a person chooses for one example is chosen for all, on every page of this browser. */
export function keepLanguage(): void {
  choose(saved());
  document.addEventListener("change", ({ target }) => {
    if (!(target instanceof HTMLInputElement) || target.closest(".example") === null) return;
    // The example that was clicked stays where it is, though those above it change their height.
    const before = target.getBoundingClientRect().top;
    choose(target.value);
    scrollBy(0, target.getBoundingClientRect().top - before);
    save(target.value);
  });
}

function choose(language: string | null): void {
  if (language === null) return;
  const inputs = document.querySelectorAll<HTMLInputElement>(".example input");
  for (const input of inputs) if (input.value === language) input.checked = true;
}

function saved(): string | null {
  try {
    return localStorage.getItem(STORAGE_NAME);
  } catch {
    // A browser may forbid storage.
    return null;
  }
}

function save(language: string): void {
  try {
    localStorage.setItem(STORAGE_NAME, language);
  } catch {
    // It holds until the page is closed.
  }
}
