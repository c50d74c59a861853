export type Tone = "ok" | "limited" | "error" | "text" | "muted";

export interface Series {
  readonly label: string;
  readonly tone: Tone;
  /** Beside the label: a series is never told by its colour alone. */
  readonly symbol: string;
  readonly isDashed?: boolean;
  /** Null where there is no data: a gap, never zero. */
  readonly values: readonly (number | null)[];
}
