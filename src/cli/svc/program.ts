/** Defines the commands of `svc` and their options, and converts their results and failures to output and exit codes. */
import { Command, CommanderError } from "commander";
import { ProjectError } from "../../engine/bundler/fault.js";
import { readServiceVersion } from "../../version.js";
import { addCheckCommand } from "./commands/check.js";
import { addDataCommand } from "./commands/data.js";
import { addDevelopCommand } from "./commands/develop.js";
import { addInitCommand } from "./commands/init.js";
import { addPublishCommand } from "./commands/publish.js";
import { addRunCommand } from "./commands/run.js";
import { addSettingsCommand } from "./commands/settings.js";
import { addSignInCommand } from "./commands/sign-in.js";
import { addStagesCommand } from "./commands/stages.js";
import { addSyncCommands } from "./commands/sync.js";
import { createCompletionScript } from "./completion.js";
import { CliError, EXIT_CODES } from "./failure.js";
import { CommandOutput } from "./output.js";
import { CliSession, type CommandEnvironment, type CommandRunner, type GlobalOptions } from "./session.js";

function toCliError(error: unknown): CliError {
  if (error instanceof CliError) return error;
  const { message } = error as Error;
  return new CliError(error instanceof ProjectError ? message : `unexpected error: ${message}`);
}

/**
 * Builds the program with all its commands.
 * @param onExit receives the exit code of a command that returns one, such as `svc diff --exit-code`. A command that fails throws an error
 * instead
 */
export function createProgram(environment: CommandEnvironment, onExit: (code: number) => void): Command {
  const program = new Command("svc");
  program
    .description("Develops an app of Svc App Actions from a folder.")
    .version(readServiceVersion(), "--version", "print the version")
    .option("--json", "print one JSON document and nothing else")
    .option("--yes", "do not ask for confirmation")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => {
        environment.stdout.write(text);
      },
      writeErr: (text) => {
        environment.stderr.write(text);
      },
    })
    .showHelpAfterError("(run with --help for the commands)");
  const run: CommandRunner = async (work) => {
    const session = new CliSession(environment, program.opts<GlobalOptions>());
    const code = await work(session);
    if (typeof code === "number") onExit(code);
  };
  for (const addCommand of [
    addSignInCommand,
    addInitCommand,
    addDevelopCommand,
    addCheckCommand,
    addSyncCommands,
    addRunCommand,
    addPublishCommand,
    addSettingsCommand,
    addDataCommand,
    addStagesCommand,
  ]) {
    addCommand(program, run);
  }
  program
    .command("completion")
    .argument("<shell>", "bash, zsh or fish")
    .description("print a completion script")
    .action((shell: string) => {
      environment.stdout.write(createCompletionScript(program, shell));
    });
  // Lets people write --json and --yes after the name of a command too, not only before it.
  const addGlobalOptions = (command: Command) => {
    for (const subcommand of command.commands) {
      subcommand
        .option("--json", "print one JSON document and nothing else")
        .option("--yes", "do not ask for confirmation")
        .exitOverride();
      subcommand.copyInheritedSettings(program);
      addGlobalOptions(subcommand);
    }
  };
  addGlobalOptions(program);
  program.hook("preAction", (_program, command) => {
    const { json, yes } = command.opts<GlobalOptions>();
    if (json === true) program.setOptionValue("json", true);
    if (yes === true) program.setOptionValue("yes", true);
  });
  return program;
}

export async function runSvc(args: readonly string[], environment: CommandEnvironment): Promise<number> {
  let code: number = EXIT_CODES.done;
  const program = createProgram(environment, (exitCode) => {
    code = exitCode;
  });
  try {
    await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.wrongUse;
    const failure = toCliError(error);
    const isJson = args.includes("--json");
    new CommandOutput(isJson, environment, environment.env).writeFailure(failure.message, failure.details);
    return failure.exitCode;
  }
}
