/** The logo of Petstore, a paw, for the header of each page and its icon. It measures 16 by 16. */
export const MARK_PATH =
  "M1.4 7.2a1.6 1.9 0 1 0 3.2 0a1.6 1.9 0 1 0-3.2 0zM4.5 3.9a1.7 2.1 0 1 0 3.4 0a1.7 2.1 0 1 0-3.4 0zM8.1 3.9a1.7 2.1 0 1 0 3.4 0a1.7 2.1 0 1 0-3.4 0zM11.4 7.2a1.6 1.9 0 1 0 3.2 0a1.6 1.9 0 1 0-3.2 0zM8 7.7c2.2 0 4.3 2.3 4.3 4.4 0 1.5-1.1 2.3-2.3 2-.7-.2-1.3-.4-2-.4s-1.3.2-2 .4c-1.2.3-2.3-.5-2.3-2 0-2.1 2.1-4.4 4.3-4.4z";

/** The logo as a URL. */
export const ICON = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='%231a5bcc'%3E%3Cpath d='${MARK_PATH}'/%3E%3C/svg%3E`;
