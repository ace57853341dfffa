/** Log of the process. Its lines about errors leave out all properties that may contain values, such as the parameters of a query. */
import { type DestinationStream, type Logger, type LoggerOptions, pino } from "pino";

const LOGGED_FIELDS = ["code", "constraint", "table", "column", "routine", "syscall"] as const;

/** Replaces the message of a JSON.parse error, because the message quotes the parsed text. */
const getLoggableMessage = (error: Error): string =>
  error instanceof SyntaxError ? "a text could not be parsed" : error.message;

/** Returns type, message, stack and LOGGED_FIELDS of an error. Other properties may contain values of rows or parameters. */
function selectLoggedFields(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const errorFields = ((error as { driverError?: unknown }).driverError ?? error) as Record<string, unknown>;
  const message = getLoggableMessage(error);
  return {
    type: error.constructor.name,
    message,
    stack: error.stack?.replace(error.message, message),
    ...Object.fromEntries(
      LOGGED_FIELDS.flatMap((name) => (typeof errorFields[name] === "string" ? [[name, errorFields[name]]] : [])),
    ),
    ...(error.cause !== undefined && { cause: selectLoggedFields(error.cause) }),
  };
}

/**
 * Writes lines of JSON to `destination`, by default standard output. Errors are logged in the field `err`.
 * @param shouldOmit returns true for the arguments of a line that must not be written
 */
export function createLog(
  level: string,
  {
    destination,
    shouldOmit,
  }: { destination?: DestinationStream; shouldOmit?: (parts: readonly unknown[]) => boolean } = {},
): Logger {
  const options: LoggerOptions = {
    level,
    serializers: { err: selectLoggedFields },
    ...(shouldOmit && {
      hooks: {
        logMethod(parts, method) {
          if (!shouldOmit(parts)) method.apply(this, parts);
        },
      },
    }),
  };
  return destination ? pino(options, destination) : pino(options);
}

const CONSOLE_METHODS = ["trace", "error", "warn", "info", "log", "debug"] as const;

/**
 * Logs the console output of libraries as warnings. Otherwise, this output would get between the log's lines of JSON on standard output, or
 * between the messages to people on standard error.
 */
export function redirectConsoleToLog(
  log: Logger,
  target: Pick<Console, (typeof CONSOLE_METHODS)[number]> = console,
): void {
  for (const method of CONSOLE_METHODS) {
    target[method] = (...parts: unknown[]) => {
      const err = parts.find((part) => part instanceof Error);
      const words = parts.filter((part) => typeof part === "string").join(" ");
      log.warn({ console: method, ...(err && { err }) }, words || "a library wrote to the console");
    };
  }
}
