/** Formats code with Prettier, which is loaded at the first use. */

/** Returns the formatted code. @throws SyntaxError if the code is not valid JavaScript */
export async function formatCode(code: string): Promise<string> {
  const [{ format }, babel, estree] = await Promise.all([
    import("prettier/standalone"),
    import("prettier/plugins/babel"),
    import("prettier/plugins/estree"),
  ]);
  return format(code, { parser: "babel", plugins: [babel, estree], printWidth: 100 });
}
