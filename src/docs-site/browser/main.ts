/** The script of every page of the documentation. The pages work without it, but for search and try-it. */
import { addCopyButtons } from "./copy.ts";
import { keepLanguage } from "./languages.ts";
import { startSearch } from "./search.ts";
import { startSidebar } from "./sidebar.ts";
import { startThemeSwitch } from "./theme-switch.ts";
import { startTryIt } from "./try-it.tsx";

startThemeSwitch();
keepLanguage();
addCopyButtons(document);
startSidebar();
startSearch();
startTryIt();
