/** Environment of programs that tests start: nothing of the test's own but the path, and what V8 compiled for programs before. */
export function programEnvironment(): Record<string, string> {
  const { PATH = "", NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }) };
}
