import type { Session } from "../session.ts";

export interface PageProps {
  readonly session: Session;
  /** The identifier in the path; empty if the path has none. */
  readonly id: string;
}
