/** Completions and hovers of an action's code in Monaco, from the words that are known of the editor's text. Learns nothing itself. */
import * as monaco from "monaco-editor/esm/vs/editor/edcore.main.js";
import { pathBefore, type Word, type Words, wordsAt } from "./code-words.js";

const known = new WeakMap<monaco.editor.ITextModel, Words>();

/** What is suggested in that text from now on. */
export function setWords(model: monaco.editor.ITextModel, words: Words): void {
  known.set(model, words);
}

const { CompletionItemKind } = monaco.languages;

const kindOf = ({ detail, members }: Word) =>
  detail.includes("(")
    ? CompletionItemKind.Method
    : members.size > 0
      ? CompletionItemKind.Module
      : CompletionItemKind.Field;

const textBefore = (model: monaco.editor.ITextModel, line: number, column: number) =>
  model.getValueInRange({ startLineNumber: line, startColumn: 1, endLineNumber: line, endColumn: column });

monaco.languages.registerCompletionItemProvider("javascript", {
  triggerCharacters: ["."],
  provideCompletionItems(model, { lineNumber, column }) {
    const { startColumn, endColumn } = model.getWordUntilPosition({ lineNumber, column });
    const path = pathBefore(textBefore(model, lineNumber, startColumn));
    const words = known.get(model);
    const found = words && path ? wordsAt(words, model.getValue(), path)?.members : undefined;
    const range = { startLineNumber: lineNumber, endLineNumber: lineNumber, startColumn, endColumn };
    const suggestions = [...(found ?? [])].map(([label, word]) => ({
      label,
      kind: kindOf(word),
      detail: word.detail,
      ...(word.about !== null && { documentation: word.about }),
      insertText: label,
      range,
    }));
    return { suggestions };
  },
});

monaco.languages.registerHoverProvider("javascript", {
  provideHover(model, position) {
    const words = known.get(model);
    const at = model.getWordAtPosition(position);
    if (!words || !at) return null;
    const path = pathBefore(textBefore(model, position.lineNumber, at.startColumn)) ?? [];
    const word = wordsAt(words, model.getValue(), [...path, at.word]);
    if (!word) return null;
    const signature = `\`\`\`typescript\n${at.word}${word.detail.startsWith("(") ? "" : ": "}${word.detail}\n\`\`\``;
    return { contents: [{ value: signature }, ...(word.about === null ? [] : [{ value: word.about }])] };
  },
});
