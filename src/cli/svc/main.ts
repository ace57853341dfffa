/** Entry point of the command line `svc`. scripts/svc.mjs calls it with the process's arguments. */
import { runSvc } from "./program.js";

export async function runProgram(host: NodeJS.Process): Promise<void> {
  const { stdin, stdout, stderr, env, argv } = host;
  // A reader that closed the pipe, such as head, is no failure.
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    host.exit(0);
  });
  host.exitCode = await runSvc(argv.slice(2), { cwd: host.cwd(), env, stdin, stdout, stderr });
}
