/** `npm run token`: creates, lists and revokes credentials of every kind. The last line of its output is JSON. */
import "reflect-metadata";
import { readConfig } from "../config.js";
import { runCommand, withMigratedDatabase } from "./command.js";
import { parseTokenTask } from "./token-tasks.js";

await runCommand(async () => {
  const task = parseTokenTask(process.argv.slice(2));
  const answer = await withMigratedDatabase(readConfig(), task);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
