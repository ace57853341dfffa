/** Converts PostgreSQL's log lines into lines of the service's log. Leaves out lines that may quote statements or values. */
import type { Logger } from "pino";

/** With these settings, log lines have a prefix that `writeLine` can parse, and contain no statements, parameters or details. */
export const POSTGRES_LOG_SETTINGS: Readonly<Record<string, string>> = {
  log_destination: "stderr",
  logging_collector: "off",
  log_line_prefix: "%b|%e|",
  log_error_verbosity: "terse",
  log_min_error_statement: "panic",
  log_parameter_max_length: "0",
  log_parameter_max_length_on_error: "0",
  lc_messages: "C",
};

const LOG_LINE_PATTERN = /^([\w -]*)\|([0-9A-Z]{5})\|(\w+): {2}(.*)$/;
const READY_MESSAGE = "database system is ready to accept connections";

/**
 * Matches SQLSTATE codes whose messages quote no statements or values: success, warnings, and errors of the server (connection,
 * authorization, resources, state, system, internal).
 */
const SERVER_FAULT_SQLSTATE_PATTERN = /^(00|01|08|28|53|55|57|58|F0|XX)/;

interface PostgresServerLog {
  writeLine(text: string): void;
  /** Returns the last log line that may be the reason why the server did not start; null if there is none. */
  getLastFault(): string | null;
}

export function createPostgresServerLog(log: Logger, onReady: () => void): PostgresServerLog {
  let fault: string | null = null;

  function handleLine(text: string): void {
    // A line that starts with a tab continues the previous line. It is skipped, because it may quote data like the previous line.
    if (text === "" || text.startsWith("\t")) return;
    const [, backend, sqlState = "", severity = "", logText = ""] = LOG_LINE_PATTERN.exec(text) ?? [];
    if (severity === "") {
      fault = text;
      log.warn({ postgres: text }, "PostgreSQL");
      return;
    }
    const isFatal = severity === "FATAL" || severity === "PANIC";
    const isServerFault = isFatal || SERVER_FAULT_SQLSTATE_PATTERN.test(sqlState);
    const message = isServerFault ? logText : "withheld, it may quote data";
    if (isFatal) fault = message;
    // Logs rejected statements only at the level debug, because the client that sent the statement reports the error.
    const level =
      isServerFault && severity !== "LOG" && severity !== "INFO" && !severity.startsWith("DEBUG") ? "warn" : "debug";
    log[level]({ backend, sqlState, severity, postgres: message }, "PostgreSQL");
    if (severity === "LOG" && message === READY_MESSAGE) onReady();
  }

  return { writeLine: handleLine, getLastFault: () => fault };
}
