/** Parses the payload that a person has typed. Returns the payload, or an error message for the person. */
export function parsePayload(text: string): { payload: unknown } | { fault: string } {
  try {
    return { payload: text.trim() === "" ? {} : JSON.parse(text) };
  } catch (error) {
    return { fault: `The payload is not valid JSON: ${(error as Error).message}` };
  }
}
