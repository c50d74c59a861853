/** The theme follows the system unless the person has chosen one in this browser. */
export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** The key of the chosen theme in `localStorage`. */
export const STORED_THEME = "petstore-theme";
