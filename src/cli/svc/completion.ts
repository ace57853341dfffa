/** Generates shell completion scripts from the commands of `svc`. */
import type { Command } from "commander";
import { createUsageError } from "./failure.js";

interface CompletionEntry {
  name: string;
  description: string;
  /** Names of subcommands. If there are any, the shell completes the next word as a subcommand, not as a file name. */
  subcommands: string[];
  options: string[];
}

const listCompletionEntries = (program: Command): CompletionEntry[] =>
  program.commands.map((command) => ({
    name: command.name(),
    description: command.description(),
    subcommands: command.commands.map((subcommand) => subcommand.name()),
    options: command.options.map(({ long, short }) => long ?? short ?? ""),
  }));

const quoteWord = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function createBashCompletion(entries: readonly CompletionEntry[]): string {
  const cases = entries.map(
    ({ name, subcommands, options }) => `    ${name}) words=${quoteWord([...subcommands, ...options].join(" "))} ;;`,
  );
  return `_svc() {
  local words
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
    *) words='' ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words=${quoteWord(entries.map(({ name }) => name).join(" "))}
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _svc svc
`;
}

function createZshCompletion(entries: readonly CompletionEntry[]): string {
  const commands = entries.map(
    ({ name, description }) => `    ${quoteWord(`${name}:${description.replaceAll(":", "\\:")}`)}`,
  );
  const cases = entries.map(({ name, subcommands, options }) => {
    const subcommandCode =
      subcommands.length > 0 ? `if (( CURRENT == 3 )); then compadd -- ${subcommands.join(" ")}; return; fi; ` : "";
    return `    ${name}) ${subcommandCode}compadd -- ${options.join(" ")} ;;`;
  });
  return `#compdef svc
_svc() {
  local -a commands=(
${commands.join("\n")}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  case "$words[2]" in
${cases.join("\n")}
  esac
  _files
}
compdef _svc svc
`;
}

function createFishCompletion(entries: readonly CompletionEntry[]): string {
  const lines = entries.flatMap(({ name, description, subcommands, options }) => {
    const seenCondition = `__fish_seen_subcommand_from ${name}`;
    const noSubcommandCondition = `${seenCondition}; and not __fish_seen_subcommand_from ${subcommands.join(" ")}`;
    return [
      `complete -c svc -f -n __fish_use_subcommand -a ${name} -d ${quoteWord(description)}`,
      ...subcommands.map((word) => `complete -c svc -f -n '${noSubcommandCondition}' -a ${word}`),
      ...options
        .filter((word) => word.startsWith("--"))
        .map((word) => `complete -c svc -n '${seenCondition}' -l ${word.slice(2)}`),
    ];
  });
  return `${lines.join("\n")}\n`;
}

/** Returns the completion script for a shell. @throws CliError for a shell that is not supported */
export function createCompletionScript(program: Command, shell: string): string {
  const scripts: Record<string, (entries: readonly CompletionEntry[]) => string> = {
    bash: createBashCompletion,
    zsh: createZshCompletion,
    fish: createFishCompletion,
  };
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (!script) throw createUsageError(`shell must be bash, zsh or fish (got ${shell})`);
  return script(listCompletionEntries(program));
}
