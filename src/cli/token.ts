/** `npm run token`: makes, lists and revokes credentials of every kind, whoever may log in. Its last line is JSON. */
import "reflect-metadata";
import { readConfig } from "../config.js";
import { runCommand, withDatabase } from "./command.js";
import { readTask } from "./token-tasks.js";

await runCommand(async () => {
  const task = readTask(process.argv.slice(2));
  const answer = await withDatabase(readConfig(), task);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
