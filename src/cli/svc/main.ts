/** Entry point of the command line `svc`, which scripts/svc.mjs calls. */
import { runSvc } from "./program.js";

export async function runProgram(host: NodeJS.Process): Promise<void> {
  const { stdin, stdout, stderr, env, argv } = host;
  // A program that reads the output, such as `head`, may close the pipe early. This is not an error.
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    host.exit(0);
  });
  host.exitCode = await runSvc(argv.slice(2), { cwd: host.cwd(), env, stdin, stdout, stderr });
}
