/** Scans as messages, so that every thread executes them in the same way. */
import type { TextBeginning } from "./partial-text.js";
import type { ScannedText, SecretScan } from "./scan.js";

export type Task =
  | { kind: "find"; texts: readonly ScannedText[] }
  | { kind: "mask"; texts: readonly ScannedText[] }
  | { kind: "url"; text: string }
  | { kind: "maskJson"; text: string }
  | ({ kind: "maskBeginning" } & TextBeginning)
  | { kind: "json"; text: string };

/** Number of characters of the texts in a task. */
export function sizeOfTask(task: Task): number {
  return "texts" in task ? task.texts.reduce((sum, { text }) => sum + text.length, 0) : task.text.length;
}

export function perform(scan: SecretScan, task: Task): unknown {
  switch (task.kind) {
    case "find":
      return scan.find(task.texts);
    case "mask":
      return task.texts.map(scan.mask);
    case "url":
      return scan.findInUrl(task.text);
    case "maskJson":
      return scan.maskJson(task.text);
    case "maskBeginning":
      return scan.maskBeginning(task);
    case "json":
      return scan.findInJson(task.text);
  }
}
