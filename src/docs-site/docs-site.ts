import { CLIENT_PACKAGE_PATHS } from "../domain/paths.ts";
import { andThen } from "../runtime/awaitable.ts";
import { loadFor, loadOnce } from "../runtime/load-once.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import type { DocsPages } from "../public/static-routes.ts";
import { documentedVersion } from "../petstore/documents.ts";

/**
 * The documentation site. Everything is loaded and rendered on the first request of a page, so that a server starts as
 * fast as without it, and then stays in memory, about 1 MB, until the limits change.
 */
export function createDocsSite(settings: DocumentedSettings): DocsPages {
  const pages = loadFor(
    () => documentedVersion(settings),
    async () => (await import("./serve-site.ts")).sitePages(settings),
  );
  const client = loadOnce(async () => (await import("./client-package.ts")).clientPackage(settings));
  return {
    respond: (request, headerLines) =>
      andThen(CLIENT_PACKAGE_PATHS.test(request.path) ? client() : pages(), (respond) =>
        respond(request, headerLines),
      ),
  };
}
