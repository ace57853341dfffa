/** svc init: creates a project folder with a first action, its test, and instructions for coding agents. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { projectTypes } from "../../../rules/project-types.js";
import { checkedApp, checkedUrl, PROJECT_FILE } from "../config.js";
import { wrongUse } from "../failure.js";
import type { Run } from "../session.js";

const ACTION = `import { defineAction } from "svc";
import { greeting } from "../../lib/greeting";

export const config = defineAction({
  description: "Greets a person.",
  active: true,
  environment: "server",
  triggers: [{ trigger: "manual" }],
});

export async function execute({ payload }: { payload: { name?: string } }) {
  console.log("greeting", payload.name);
  return { text: greeting(payload.name ?? "world") };
}
`;

const HELPER_FILE = `export function greeting(name: string): string {
  return \`Hello \${name}\`;
}
`;

const TEST = `import { equal, test } from "svc/test";
import { execute } from "./action";

test("greets by name", async () => {
  equal(await execute({ payload: { name: "Ada" } }), { text: "Hello Ada" });
});
`;

const AGENTS_FILE = `# Instructions for coding agents

This folder is an app of Svc App Actions: JavaScript and TypeScript functions that run on a server.

- \`actions/<name>/action.ts\` holds one action: \`config\` and the function \`execute(context)\`.
- \`context.payload\` is the input. \`context.settings\` holds private and protected settings, in \`server\` actions only.
- Code runs in a browser: no Node, no file system. \`fetch\`, \`crypto\`, timers and \`Svc.*\` are there.
- \`lib/\` holds shared modules. \`data/*.json\` defines data sources. \`settings.json\` names settings, never secret values.
- Never write a secret into a file, a log or a result. Ask your user to run \`svc settings set __key\`.

Work in this order:

1. \`svc diff\` shows what differs from the server.
2. Edit, then \`svc check\` for types, and \`svc test\`.
3. \`svc push --yes\` saves drafts. It changes nothing that users see.
4. \`svc run <action> --draft --payload '{}' --json\` runs a draft; \`svc logs\` shows the log.
5. Ask your user before \`svc publish\`.

Documentation for you: \`<url of svc.json>/llms.txt\` is an index, \`/llms-full.txt\` the whole text. Tools over MCP: \`<url of svc.json>/mcp\`.
`;

const TSCONFIG_CONTENT = {
  compilerOptions: {
    target: "es2022",
    module: "esnext",
    moduleResolution: "bundler",
    lib: ["es2023", "dom", "dom.iterable"],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    resolveJsonModule: true,
  },
  include: ["svc.d.ts", "actions", "lib"],
};

/** Writes the files of a new project; those that are there stay. @returns paths of the files that it wrote */
export function writeProject(root: string, url: string, app: number): string[] {
  const files: Record<string, string> = {
    [PROJECT_FILE]: `${JSON.stringify({ url, app }, null, 2)}\n`,
    "actions/hello/action.ts": ACTION,
    "actions/hello/action.test.ts": TEST,
    "lib/greeting.ts": HELPER_FILE,
    "svc.d.ts": projectTypes({}, {}, new Map(), ""),
    "tsconfig.json": `${JSON.stringify(TSCONFIG_CONTENT, null, 2)}\n`,
    "AGENTS.md": AGENTS_FILE,
    ".gitignore": ".svc/\nnode_modules/\n",
  };
  const writtenFiles = Object.keys(files).filter((file) => !existsSync(join(root, file)));
  for (const file of writtenFiles) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), files[file]!);
  }
  return writtenFiles;
}

export function addInit(program: Command, run: Run): void {
  program
    .command("init")
    .argument("[folder]", "folder of the project", ".")
    .description("make a project folder with a first action")
    .option("--url <address>", "address of the server", "http://127.0.0.1:4000")
    .option("--app <id>", "ID of the app", "1")
    .action((folder: string, options: { url: string; app: string }) =>
      run(async ({ output, surroundings: { cwd, env } }) => {
        const root = resolve(cwd, folder);
        const url = checkedUrl(env["SVC_URL"] ?? options.url, "--url");
        const app = checkedApp(env["SVC_APP"] ?? options.app, "--app");
        if (existsSync(join(root, PROJECT_FILE))) throw wrongUse(`${PROJECT_FILE} is there already`);
        const writtenFiles = writeProject(root, url, app);
        output.line(`Made ${basename(root)} for app ${app} at ${url}`, "green");
        for (const file of writtenFiles) output.line(`  ${file}`);
        output.line(env["SVC_TOKEN"] ? "Next: svc push" : "Next: svc login, then svc push");
        output.json({ root, url, app, files: writtenFiles });
      }),
    );
}
