/** svc data: copies entries between a data source (a table of the app) and a file of JSON lines, in both directions. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { CliError, createUsageError } from "../failure.js";
import type { CliSession, CommandRunner } from "../session.js";
import { readTextFile } from "../text-file.js";

const DATA_SOURCES_ROUTE = "/v1/apps/:app/data-sources";

export function addDataCommand(program: Command, run: CommandRunner): void {
  const data = program.command("data").description("entries of data sources");

  data
    .command("pull")
    .argument("<source>", "name of the data source")
    .description("print all entries, one JSON object a line")
    .action((source: string) =>
      run(async ({ client, output, environment }) => {
        const path = `${DATA_SOURCES_ROUTE}/${encodeURIComponent(source)}/export`;
        const { body } = await client.sendRequest("GET", path, { query: { by: "name", format: "json" } });
        const entries = body as unknown[];
        if (output.isJson) output.writeJson({ entries });
        else for (const entry of entries) environment.stdout.write(`${JSON.stringify(entry)}\n`);
      }),
    );

  data
    .command("push")
    .argument("<source>", "name of the data source")
    .argument("[file]", "file with JSON lines or a JSON array; - for standard input", "-")
    .description("add entries, all or none")
    .option("--replace", "replace all entries")
    .action((source: string, file: string, { replace = false }: { replace?: boolean }) =>
      run(async (session) => {
        const entries = parseEntries(file === "-" ? await session.readStdin() : readEntriesFile(session, file));
        if (replace) await session.confirm(`Replace all entries of ${source} by ${entries.length}?`);
        const path = `${DATA_SOURCES_ROUTE}/${encodeURIComponent(source)}/import`;
        const query = { by: "name", append: !replace };
        const { body } = await session.client.sendRequest("POST", path, { query, body: entries });
        session.output.writeLine(`wrote ${body.inserted} entries`, "green");
        session.output.writeJson({ inserted: body.inserted });
      }),
    );
}

function readEntriesFile({ environment }: CliSession, file: string): string {
  try {
    return readTextFile(resolve(environment.cwd, file), file);
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw createUsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

function parseEntries(content: string): unknown[] {
  let lineNumber: number | null = null;
  try {
    const trimmedContent = content.trim();
    if (trimmedContent.startsWith("[")) return JSON.parse(trimmedContent) as unknown[];
    const entries: unknown[] = [];
    for (const [index, line] of content.split("\n").entries()) {
      lineNumber = index + 1;
      if (line.trim() !== "") entries.push(JSON.parse(line.trim()));
    }
    return entries;
  } catch (error) {
    // Removes a position in line 1 from V8's message. V8 receives a single line of the file, so this position is wrong for the file.
    const fault = (error as Error).message.replace(/ at position \d+ \(line 1 column \d+\)$/, "");
    const prefix = lineNumber === null ? "" : `line ${lineNumber}: `;
    throw createUsageError(`the entries must be JSON lines or a JSON array (${prefix}${fault})`);
  }
}
