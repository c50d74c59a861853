/* The script of every page of the documentation. The pages work without it, but for search and try-it. */

import { addCopyButtons, keepLanguage, startSidebar, startThemeSwitch } from "./page-controls.ts";
import { startSearch } from "./search.tsx";
import { startTryIt } from "./try-it.tsx";

startThemeSwitch();
startTryIt();
keepLanguage();
addCopyButtons();
startSidebar();
startSearch();
