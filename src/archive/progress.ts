/** The progress of work that takes long. */
export interface WorkProgress {
  /** The current step, such as `copying`. */
  readonly step?: string | undefined;
  /** The rows of this step that are done, or its bytes; undefined if they cannot be counted. */
  readonly done?: number | undefined;
  readonly unit?: "bytes";
  /** The share of this step that is done, from 0 to 1; undefined if the end is unknown. */
  readonly share?: number | undefined;
}

export type OnProgress = (progress: WorkProgress) => void;
