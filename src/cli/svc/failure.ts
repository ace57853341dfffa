/** Failures of the command line and their exit codes (docs/reference/command-line.md). */

export const EXIT = { done: 0, failed: 1, wrongUse: 2, different: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** A failure that the command line reports without a stack. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: ExitCode;
  /** Added to the JSON output. */
  readonly details: Record<string, unknown>;

  constructor(message: string, exitCode: ExitCode = EXIT.failed, details: Record<string, unknown> = {}) {
    super(message);
    this.exitCode = exitCode;
    this.details = details;
  }
}

/** The failure of a command that a signal ended: nothing of the command may go on. */
export class InterruptedError extends CliError {}

export const wrongUse = (message: string): CliError => new CliError(message, EXIT.wrongUse);
