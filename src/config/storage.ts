import { DataDirectory } from "../data-directory.ts";
import { DataLocation } from "../data-location.ts";
import type { ACCEPT_PRIMARY_OPTION, NEW_DATABASE_OPTION, STORAGE_OPTIONS } from "./options.ts";
import type { ValuesOf } from "./parse-options.ts";

/** The values that apply to one start, or to one command. */
export type OnceValues = Partial<ValuesOf<typeof ACCEPT_PRIMARY_OPTION & typeof NEW_DATABASE_OPTION>>;

/** Returns where the settings say that the data are. */
export function dataLocationOf(values: ValuesOf<typeof STORAGE_OPTIONS> & OnceValues): DataLocation {
  const { env: environment, data: path, "new-database": allowsNewDatabase } = values;
  return new DataLocation({
    directory: new DataDirectory({ path, environment, allowsNewDatabase }),
    url: values["database-url"],
    urlFile: values["database-url-file"],
    acceptsAny: values["accept-primary"],
  });
}
