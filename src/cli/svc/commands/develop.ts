/** svc dev, svc test: pushes drafts as files are saved, and runs tests in the service's sandbox. */
import { watch } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { CliError } from "../failure.js";
import type { Run, Session } from "../session.js";
import { runTests } from "../tests.js";
import { checkTypes } from "./check.js";
import { push } from "./sync.js";

const SETTLED_MS = 60;
const OURS = /^(?:actions|lib|data)[\\/]|^(?:settings|alerts|app)\.json$/;

/** Calls `work` after each burst of changes, one call at a time. */
async function onChanges(session: Session, work: () => Promise<unknown>): Promise<never> {
  let isDirty = true;
  const watcher = watch(session.target.root, { recursive: true }, (_event, file) => {
    if (file !== null && OURS.test(file) && !file.includes(".svc")) isDirty = true;
  });
  watcher.on("error", (error) => session.output.note(error.message));
  for (;;) {
    if (isDirty) {
      isDirty = false;
      try {
        await work();
      } catch (error) {
        if (!(error instanceof CliError)) throw error;
        session.output.failure(error.message, error.details);
      }
    }
    await delay(SETTLED_MS);
  }
}

export function addDevelop(program: Command, run: Run): void {
  program
    .command("dev")
    .description("save drafts on the server whenever a file is saved, and check types")
    .action(() =>
      run(async (session) => {
        session.output.note(`Watching ${session.target.root}; end with Ctrl C`);
        await onChanges(session, async () => {
          await push(session, {}, async () => undefined);
          await checkTypes(session);
        });
      }),
    );
  program
    .command("test")
    .argument("[actions...]", "names of actions; without any: all that have a test")
    .description("run actions/<name>/action.test.ts in the service's sandbox")
    .option("--watch", "run again whenever a file is saved")
    .action((names: string[], { watch: goesOn = false }: { watch?: boolean }) =>
      run(async (session) => {
        if (goesOn) await onChanges(session, () => runTests(session, names));
        else session.output.json({ tests: await runTests(session, names) });
      }),
    );
}
