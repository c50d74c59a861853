import { type AdminOperation, BODY_ERRORS, ok } from "./operation.ts";
import { Overview, Range } from "./history-resources.ts";
import { NewSession, Server, Session, Settings } from "./resources.ts";

export const SERVER_OPERATIONS = {
  createSession: {
    method: "POST",
    path: "/session",
    tag: "Session",
    summary: "Sign in",
    description:
      "Trades the admin token for a session cookie, for browsers. The cookie is valid for 12 hours, and until the token is replaced. Programs send the token in every request instead: `Authorization: Bearer <token>`.",
    body: NewSession,
    success: ok("The session; `Set-Cookie` has the cookie", Session),
    errors: [...BODY_ERRORS, "invalid_token", "too_many_attempts"],
    needsNoToken: true,
  },
  getSession: {
    method: "GET",
    path: "/session",
    tag: "Session",
    summary: "Tell whether the request is signed in",
    description: "Responds without a session or token, too.",
    success: ok("The session", Session),
    errors: [],
    needsNoToken: true,
  },
  deleteSession: {
    method: "DELETE",
    path: "/session",
    tag: "Session",
    summary: "Sign out",
    description: "Ends the session of the cookie.",
    success: { status: 204, description: "The session is over" },
    errors: [],
    needsNoToken: true,
  },
  getServer: {
    method: "GET",
    path: "/server",
    tag: "Server",
    summary: "Show the server and what it depends on",
    description: "Describes the server that responds, and the state of its database and its rate limiter.",
    success: ok("The server", Server),
    errors: [],
  },
  getOverview: {
    method: "GET",
    path: "/overview",
    tag: "Server",
    summary: "Show requests and response times",
    description:
      "Live series of the server that responds, since it started: steps of 5 seconds for up to an hour, steps of a minute for up to 24 hours. The keys with the most requests are those of all servers.",
    query: { range: Range },
    success: ok("The overview", Overview),
    errors: ["invalid_parameter"],
  },
  getSettings: {
    method: "GET",
    path: "/settings",
    tag: "Server",
    summary: "List settings",
    description: "Lists the settings of the server that responds, each with its source. Secrets are masked.",
    success: ok("The settings", Settings),
    errors: [],
  },
} as const satisfies Record<string, AdminOperation>;
