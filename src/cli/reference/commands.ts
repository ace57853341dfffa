/** Builds the reference page of the command line `svc` from the definitions of its commands. */
import type { Command } from "commander";
import { createProgram } from "../svc/program.js";
import type { CommandEnvironment } from "../svc/session.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

function formatUsage(command: Command, parentPath: string): string {
  const words = command.registeredArguments.map((argument) => {
    const name = argument.variadic ? `${argument.name()}...` : argument.name();
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [`${parentPath} ${command.name()}`, ...words].join(" ").trim();
}

const isGlobalOption = (flags: string): boolean => flags === "--json" || flags === "--yes";

function buildCommandRows(command: Command, parentPath: string): string[][] {
  const path = `${parentPath} ${command.name()}`.trim();
  const options = command.options
    .filter(({ flags }) => !isGlobalOption(flags))
    .map(({ flags, description }) => `${formatInlineCode(flags)}: ${description}`);
  const commandRows =
    command.commands.length > 0
      ? []
      : [[formatInlineCode(formatUsage(command, parentPath)), command.description(), options.join("; ")]];
  return [...commandRows, ...command.commands.flatMap((subcommand) => buildCommandRows(subcommand, path))];
}

export function buildCommandsPage(): string {
  // No command runs here, so the empty environment is never used.
  const program = createProgram({} as CommandEnvironment, () => undefined);
  const lead =
    "For developers who keep an app in a folder. [The command line](command-line.md) shows how to use these commands. Every command also has the options `--json` (print one JSON document) and `--yes` (ask no questions). Operators find the commands of the service, such as `npm run backup`, in [operating](../operate/operating.md#commands).";
  return buildReferencePage("Commands of svc", lead, "the program", [
    formatMarkdownTable(["command", "does", "options"], buildCommandRows(program, "")),
  ]);
}
