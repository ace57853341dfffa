/** Failures of the command line and their exit codes (docs/reference/command-line.md). */

export const EXIT_CODES = { done: 0, failed: 1, wrongUse: 2, different: 3 } as const;
export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES];

/** Failure that `svc` prints without a stack trace. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: ExitCode;
  readonly details: Record<string, unknown>;

  constructor(message: string, exitCode: ExitCode = EXIT_CODES.failed, details: Record<string, unknown> = {}) {
    super(message);
    this.exitCode = exitCode;
    this.details = details;
  }
}

/** The service did not respond, or a proxy responded instead of it. A later request may succeed. */
export class ConnectionError extends CliError {}

/** Failure that also ends a command that watches files, because no change of a file can remove the cause. */
export class UnrecoverableError extends CliError {}

/** Failure of a command that a process signal has interrupted, so that the command must not continue. */
export class InterruptedError extends UnrecoverableError {}

export const createUsageError = (message: string): CliError => new CliError(message, EXIT_CODES.wrongUse);
