/* The Markdown of the guides. They are imported, so that an executable contains them. */

import changelog from "../../CHANGELOG.md" with { type: "text" };
import api from "../../docs/api.md" with { type: "text" };
import authentication from "../../docs/authentication.md" with { type: "text" };
import clientLibrary from "../../docs/client-library.md" with { type: "text" };
import compatibility from "../../docs/compatibility.md" with { type: "text" };
import deprecation from "../../docs/deprecation.md" with { type: "text" };
import generatedClients from "../../docs/generated-clients.md" with { type: "text" };
import goingToProduction from "../../docs/going-to-production.md" with { type: "text" };
import errors from "../../docs/errors.md" with { type: "text" };
import idempotency from "../../docs/idempotency.md" with { type: "text" };
import integers from "../../docs/integers.md" with { type: "text" };
import pagination from "../../docs/pagination.md" with { type: "text" };
import quickstart from "../../docs/quickstart.md" with { type: "text" };
import rateLimits from "../../docs/rate-limits.md" with { type: "text" };
import rateLimitsFigure from "../../docs/rate-limits.svg" with { type: "text" };

/** The guides by their names, in the order of the sidebar. */
export const GUIDE_SOURCES = {
  quickstart,
  api,
  authentication,
  pagination,
  "rate-limits": rateLimits,
  idempotency,
  errors,
  integers,
  "going-to-production": goingToProduction,
  compatibility,
  deprecation,
  "client-library": clientLibrary,
  "generated-clients": generatedClients,
  changelog: forClients(changelog),
} as const;

export type GuideName = keyof typeof GUIDE_SOURCES;

/** SVG by the name of its file. */
export const FIGURES: Readonly<Record<string, string>> = { "rate-limits.svg": rateLimitsFigure };

/** The parts for clients, without their heading. The introduction and the other parts are for other readers. */
function forClients(text: string): string {
  return text
    .replace(/^(# .*\n+)[^#]*/, `$1What has changed for clients, newest first.\n\n`)
    .replace(/^### For clients\n+/gm, "")
    .replace(/^### For operators\n[\s\S]*?(?=^## |$(?![\s\S]))/gm, "");
}
