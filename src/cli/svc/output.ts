/** Output of the command line: text for people, or one JSON document with --json. Uses colors only on a terminal. */
import { styleText } from "node:util";

type TextStyle = "red" | "green" | "yellow" | "cyan" | "dim" | "bold";

export interface ProgramStreams {
  stdout: NodeJS.WritableStream & { isTTY?: boolean };
  stderr: NodeJS.WritableStream & { isTTY?: boolean };
}

/** Replaces control characters, because names and messages from the server may contain some that change the terminal. */
const toPrintable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this expression matches the control characters to replace
  text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\u{fffd}");

export class CommandOutput {
  readonly isJson: boolean;
  readonly #streams: ProgramStreams;
  readonly #usesColors: boolean;

  constructor(isJson: boolean, streams: ProgramStreams, env: Readonly<Record<string, string | undefined>>) {
    this.isJson = isJson;
    this.#streams = streams;
    this.#usesColors = streams.stdout.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  }

  applyStyle(style: TextStyle, text: string): string {
    return this.#usesColors ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Prints a line for people. Prints nothing with --json. */
  writeLine(text = "", style?: TextStyle): void {
    if (this.isJson) return;
    const cleanText = toPrintable(text);
    this.#streams.stdout.write(`${style ? this.applyStyle(style, cleanText) : cleanText}\n`);
  }

  /** Prints a note on standard error, so that the note is not part of the command's output. Prints nothing with --json. */
  writeNote(text: string): void {
    if (!this.isJson) this.#streams.stderr.write(`${toPrintable(text)}\n`);
  }

  /** Prints the command's result as JSON if --json is set. Nothing else is then printed on standard output. */
  writeJson(value: unknown): void {
    if (this.isJson) this.#streams.stdout.write(`${JSON.stringify(value)}\n`);
  }

  writeTable(rows: readonly (readonly string[])[]): void {
    const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
    for (const row of rows)
      this.writeLine(
        row
          .map((cell, index) => cell.padEnd(widths[index]!))
          .join("  ")
          .trimEnd(),
      );
  }

  writeFailure(message: string, details: Record<string, unknown>): void {
    if (this.isJson) {
      this.#streams.stdout.write(`${JSON.stringify({ error: message, ...details })}\n`);
      return;
    }
    this.#streams.stderr.write(`${this.applyStyle("red", "error")} ${toPrintable(message)}\n`);
    const { faults } = details as { faults?: { path: string; error: string }[] };
    for (const { path, error } of Array.isArray(faults) ? faults : []) {
      this.#streams.stderr.write(`  ${toPrintable(path === "" ? error : `${path}: ${error}`)}\n`);
    }
  }
}
