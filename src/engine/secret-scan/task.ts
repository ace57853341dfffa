/** A search for secrets as a message, and its execution. The main thread and the scan thread both use this file. */
import type { StreamedText } from "./partial-text.js";
import type { ScannedText, SecretScan } from "./scan.js";

export type ScanTask =
  | { kind: "find"; texts: readonly ScannedText[] }
  | { kind: "mask"; texts: readonly ScannedText[] }
  | { kind: "url"; text: string }
  | { kind: "maskJson"; text: string }
  | ({ kind: "maskStartOfStreamedText" } & StreamedText)
  | { kind: "json"; text: string | Uint8Array };

/** Returns `text` as a string. Callers may pass a string or its UTF-8 bytes. */
const decodeText = (text: string | Uint8Array): string =>
  typeof text === "string" ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString();

export function countScanTaskCharacters(task: ScanTask): number {
  return "texts" in task ? task.texts.reduce((sum, { text }) => sum + text.length, 0) : task.text.length;
}

export function performScanTask(scan: SecretScan, task: ScanTask): unknown {
  switch (task.kind) {
    case "find":
      return scan.find(task.texts);
    case "mask":
      return task.texts.map((text) => scan.mask(text));
    case "url":
      return scan.findInUrl(task.text);
    case "maskJson":
      return scan.maskJson(task.text);
    case "maskStartOfStreamedText":
      return scan.maskStartOfStreamedText(task);
    case "json":
      return scan.findInJson(decodeText(task.text));
  }
}
