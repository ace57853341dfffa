/** Formats code with Prettier. Its parser is loaded on first use. */

/** @throws SyntaxError for what is no JavaScript */
export async function formatCode(code: string): Promise<string> {
  const [{ format }, babel, estree] = await Promise.all([
    import("prettier/standalone"),
    import("prettier/plugins/babel"),
    import("prettier/plugins/estree"),
  ]);
  return format(code, { parser: "babel", plugins: [babel, estree], printWidth: 100 });
}
