export interface WorkProgress {
  /** What is being done, such as `copying production.db`. */
  readonly step?: string;
  /** Rows or bytes of this step; undefined if they cannot be counted. */
  readonly done?: number;
  /** Of all steps, from 0 to 1; undefined if the end is not known. */
  readonly share?: number;
}

export interface Step {
  readonly name: string;
  /** The time that it takes, in the unit of the total cost. */
  readonly cost: number;
}

/** Long work that consists of steps whose costs are known approximately. */
export class Steps {
  #costBefore = 0;

  constructor(
    private readonly totalCost: number,
    private readonly onProgress: (progress: WorkProgress) => void,
  ) {}

  /** `work` reports how far it is: the share of the step, and what is done in rows or bytes. */
  async run<T>(
    { name: step, cost }: Step,
    work: (report: (share: number, done?: number) => void) => Promise<T>,
  ): Promise<T> {
    const report = (share: number, done?: number) =>
      this.onProgress({
        step,
        ...(done !== undefined && { done }),
        share: Math.min(1, (this.#costBefore + cost * Math.min(1, share)) / Math.max(1, this.totalCost)),
      });
    report(0);
    const result = await work(report);
    this.#costBefore += cost;
    return result;
  }
}
