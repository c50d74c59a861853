/** The icon of all pages, as a URL. */
export const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='%231a5bcc'%3E%3Ccircle cx='3' cy='7' r='1.7'/%3E%3Ccircle cx='6.3' cy='4' r='1.8'/%3E%3Ccircle cx='9.7' cy='4' r='1.8'/%3E%3Ccircle cx='13' cy='7' r='1.7'/%3E%3Cpath d='M8 7.5c2 0 4 2.200 4 4.200S9.500 14 8 13.200 4 13.700 4 11.700 6 7.500 8 7.500z'/%3E%3C/svg%3E";
