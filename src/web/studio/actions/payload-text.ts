/** Parses a payload that a person has typed, and describes what is wrong with it. */
export function parsePayload(text: string): { payload: unknown } | { fault: string } {
  try {
    return { payload: text.trim() === "" ? {} : JSON.parse(text) };
  } catch (error) {
    return { fault: `The payload is not valid JSON: ${(error as Error).message}` };
  }
}
