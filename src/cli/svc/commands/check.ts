/** svc check: checks the types in the project's files with the TypeScript compiler and the app's declarations (svc.d.ts). */
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Command } from "commander";
import { buildProjectTypes, collectPackageHashes } from "../../../rules/project-types.js";
import { CliError } from "../failure.js";
import { Project } from "../project.js";
import type { CliSession, CommandRunner } from "../session.js";

const TSCONFIG_FILE = "tsconfig.json";
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;
/** Matches a type error of the compiler: `actions/hello/action.ts(13,5): error TS2322: …`. Its further lines begin with a space. */
const LOCATED_ERROR_PATTERN = /^([^\n(]+)\((\d+),(\d+)\): error (TS\d+): /;

export interface TypeDiagnostic {
  file: string;
  line: number;
  column: number;
  code: string;
  message: string;
}

function parseTypeDiagnostics(text: string): TypeDiagnostic[] {
  const diagnostics: TypeDiagnostic[] = [];
  for (const line of text.split("\n")) {
    const [head, file, row, column, code] = LOCATED_ERROR_PATTERN.exec(line) ?? [];
    const lastDiagnostic = diagnostics.at(-1);
    if (head !== undefined)
      diagnostics.push({
        file: file!,
        line: Number(row),
        column: Number(column),
        code: code!,
        message: line.slice(head.length).trimEnd(),
      });
    else if (lastDiagnostic && line.startsWith(" ")) lastDiagnostic.message += `\n${line.trimEnd()}`;
  }
  return diagnostics;
}

/**
 * Runs the TypeScript compiler of this package, never one in the project folder: a pulled project must not run programs on this machine.
 */
function runCompiler(root: string, stopSignal: AbortSignal | undefined): Promise<{ code: number; text: string }> {
  const compiler = join(createRequire(import.meta.url).resolve("typescript/package.json"), "../bin/tsc");
  const args = [compiler, "--noEmit", "--pretty", "false", "-p", join(root, TSCONFIG_FILE)];
  return new Promise((resolve) => {
    const options = { cwd: root, maxBuffer: OUTPUT_MAX_BYTES, ...(stopSignal && { signal: stopSignal }) };
    execFile(process.execPath, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, text: stdout + stderr }),
    );
  });
}

/**
 * Writes svc.d.ts for the app, then checks the project's types. Does nothing if the project has no tsconfig.json.
 * @param stopSignal ends the check early, without an error
 * @throws CliError if a file has a type error
 */
export async function checkProjectTypes(session: CliSession, stopSignal?: AbortSignal): Promise<void> {
  const project = new Project(session.target.root);
  if (!project.hasFile(TSCONFIG_FILE)) return;
  await writeProjectTypes(session, project);
  const { code, text } = await runCompiler(session.target.root, stopSignal);
  if (code === 0 || stopSignal?.aborted) return;
  const diagnostics = parseTypeDiagnostics(text);
  if (diagnostics.length === 0) throw new CliError(`the type check failed: ${text.trim()}`);
  const lines = diagnostics.map(
    ({ file, line, column, code: id, message }) => `${file}:${line}:${column}: ${message} (${id})`,
  );
  throw new CliError(
    `${diagnostics.length === 1 ? "1 type error" : `${diagnostics.length} type errors`}\n${lines.join("\n")}`,
    1,
    { errors: diagnostics },
  );
}

/** Type declarations of npm packages by the integrity hash of their scripts. They are cached, because they never change. */
const declarationsByIntegrity = new Map<string, readonly string[] | null>();

async function readPackageDeclarations({ client }: CliSession, integrity: string): Promise<readonly string[] | null> {
  const cachedDeclarations = declarationsByIntegrity.get(integrity);
  if (cachedDeclarations !== undefined) return cachedDeclarations;
  const { body } = await client.sendRequest("GET", "/v3/apps/:app/packages/declarations", { query: { integrity } });
  const files = (body.files ?? null) as readonly string[] | null;
  declarationsByIntegrity.set(integrity, files);
  return files;
}

/** Writes svc.d.ts for the app as it will be after a push, from the definitions on the server and in the project folder. */
export async function writeProjectTypes(session: CliSession, project: Project): Promise<void> {
  const { client } = session;
  const { body } = await client.sendRequest("GET", "/v1/apps/:app/manifest");
  const { body: declarations } = await client.sendRequest("GET", "/client/svc.d.ts", {
    isAnonymous: true,
    isText: true,
  });
  // `integrity` is the hash of a package's script. It is null until an action that uses the package is pushed,
  // because the server has no types of the package before this push.
  const packageHashes = collectPackageHashes([...(body.actions ?? []), ...(await project.readConfigs())]);
  const packages = new Map<string, readonly string[] | null>();
  for (const [name, integrity] of packageHashes)
    packages.set(name, integrity === null ? null : await readPackageDeclarations(session, integrity));
  project.writeTypes(buildProjectTypes(body, project.readDefinitions(), packages, String(declarations)));
}

export function addCheckCommand(program: Command, run: CommandRunner): void {
  program
    .command("check")
    .description("check the types of the folder's files against this app")
    .action(() =>
      run(async (session) => {
        if (!new Project(session.target.root).hasFile(TSCONFIG_FILE))
          throw new CliError(
            `${TSCONFIG_FILE} is missing; run svc init in a new folder, and copy ${TSCONFIG_FILE} from there`,
          );
        await checkProjectTypes(session);
        session.output.writeLine("No type errors", "green");
        session.output.writeJson({ errors: [] });
      }),
    );
}
