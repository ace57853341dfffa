/** Context of a command: its server and app, HTTP client, output, and questions to the person at the terminal. */
import { createInterface } from "node:readline/promises";
import { buffer } from "node:stream/consumers";
import { CliApiClient } from "./client.js";
import { type ProcessEnvironment, readServerAndApp, type ServerAndApp, TokenStore } from "./config.js";
import { CliError, createUsageError } from "./failure.js";
import { CommandOutput, type ProgramStreams } from "./output.js";
import { decodeText } from "./text-file.js";

export interface GlobalOptions {
  json?: boolean;
  yes?: boolean;
}

export interface CommandEnvironment extends ProgramStreams {
  cwd: string;
  env: ProcessEnvironment;
  stdin: NodeJS.ReadableStream & { isTTY?: boolean };
}

export class CliSession {
  readonly environment: CommandEnvironment;
  readonly output: CommandOutput;
  readonly store: TokenStore;
  readonly #skipsConfirmation: boolean;
  #client: CliApiClient | null = null;

  constructor(environment: CommandEnvironment, { json = false, yes = false }: GlobalOptions) {
    this.environment = environment;
    this.output = new CommandOutput(json, environment, environment.env);
    this.store = new TokenStore(environment.env);
    this.#skipsConfirmation = yes;
  }

  get target(): ServerAndApp {
    return this.client.target;
  }

  get client(): CliApiClient {
    const { cwd, env } = this.environment;
    this.#client ??= new CliApiClient(readServerAndApp(cwd, env), env, this.store);
    return this.#client;
  }

  createClientFor(target: ServerAndApp): CliApiClient {
    return new CliApiClient(target, this.environment.env, this.store);
  }

  /** Asks the person to confirm an action. @throws CliError if the person declines, or if there is no terminal */
  async confirm(question: string): Promise<void> {
    if (this.#skipsConfirmation) return;
    const { stdin, stderr } = this.environment;
    if (stdin.isTTY !== true || this.output.isJson)
      throw createUsageError("this command needs a confirmation, but there is no terminal; pass --yes");
    const prompt = createInterface({ input: stdin, output: stderr });
    try {
      const answer = await prompt.question(`${question} [y/N] `);
      if (!/^y(?:es)?$/i.test(answer.trim())) throw new CliError("cancelled; nothing was changed");
    } finally {
      prompt.close();
    }
  }

  /** Reads the standard input. @throws CliError if it is not UTF-8 text */
  async readStdin(): Promise<string> {
    return decodeText(await buffer(this.environment.stdin as unknown as NodeJS.ReadableStream), "standard input");
  }
}

/** Runs a command. If `work` resolves to a number, this number is the exit code of `svc`. */
export type CommandRunner = (work: (session: CliSession) => Promise<unknown>) => Promise<void>;
