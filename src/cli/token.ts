/** `npm run token`: creates, lists and revokes credentials of every kind. The last line of its output is JSON. */
import "reflect-metadata";
import { readConfig } from "../config.js";
import { runCommand, withDatabase } from "./command.js";
import { readTokenTask } from "./token-tasks.js";

await runCommand(async () => {
  const task = readTokenTask(process.argv.slice(2));
  const answer = await withDatabase(readConfig(), task);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
