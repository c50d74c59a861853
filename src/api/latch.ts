/** Reports that something began to fail, and that it works again: each once, however often it is tried. */
export class Latch {
  #isFailing = false;

  constructor(
    private readonly onFailure: (error: unknown) => void,
    private readonly onRecovery: () => void = () => {},
  ) {}

  get isFailing(): boolean {
    return this.#isFailing;
  }

  failed(error: unknown): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.onFailure(error);
  }

  worked(): void {
    if (!this.#isFailing) return;
    this.#isFailing = false;
    this.onRecovery();
  }
}
