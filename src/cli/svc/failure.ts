/** Failures of the command line and their exit codes (docs/reference/command-line.md). */

export const EXIT_CODES = { done: 0, failed: 1, wrongUse: 2, different: 3 } as const;
export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES];

/** Failure that the command line reports without a stack. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: ExitCode;
  /** Fields that are added to the JSON output. */
  readonly details: Record<string, unknown>;

  constructor(message: string, exitCode: ExitCode = EXIT_CODES.failed, details: Record<string, unknown> = {}) {
    super(message);
    this.exitCode = exitCode;
    this.details = details;
  }
}

/** Failure that also ends a command that watches files, because no change of a file can correct it. */
export class FinalError extends CliError {}

/** Failure of a command that a signal has ended, so that it must not continue. */
export class InterruptedError extends FinalError {}

export const wrongUse = (message: string): CliError => new CliError(message, EXIT_CODES.wrongUse);
