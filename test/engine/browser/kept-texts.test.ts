/** A page is told of each text that it has, and never of one that it has not: the oldest go, whatever a run lists. */
import { expect } from "chai";
import { createKeptTexts, type SentScript } from "../../../src/engine/browser/pages/kept-texts.js";
import { runOf } from "./support.js";

/** What the page has, by the same words. */
function createTwin(maxCharacters: number) {
  const kept = createKeptTexts(maxCharacters);
  const page = new Map<string, string>();
  return (contents: readonly string[]) => {
    const packages = contents.map((content) => ({ name: `${content}.js`, source: content.repeat(4), content }));
    const [, , forget, scripts] = kept.valuesOf(runOf("own", { packages })) as [string, string, string[], SentScript[]];
    const evaluated = scripts.map(([, text, content, keep]) => {
      if (keep) page.set(content, text!);
      return text ?? page.get(content);
    });
    for (const content of forget) page.delete(content);
    const held = [...page.values()].reduce((sum, text) => sum + text.length, 0);
    return { evaluated, held, sent: scripts.filter(([, text]) => text !== null).length };
  };
}

describe("Texts that a page keeps", () => {
  it("are sent once, and the author's own each time", () => {
    const run = createTwin(100);
    expect(run(["a", "b"]).sent).to.equal(3);
    expect(run(["b", "a"])).to.deep.include({ sent: 1, evaluated: ["bbbb", "aaaa", "own"] });
  });

  it("are what was listed, in any order and number, within the bound", () => {
    const run = createTwin(12);
    const lists = [["a", "b", "c"], ["d", "a", "d"], ["a", "b", "c", "d", "e", "a"], ["e", "e"], [], ["c", "a"]];
    for (const list of [...lists, ...lists.toReversed(), ...lists]) {
      const { evaluated, held } = run(list);
      expect(evaluated).to.deep.equal([...list.map((content) => content.repeat(4)), "own"]);
      expect(held).to.be.at.most(12);
    }
  });

  it("are not among them where one is larger than all that a page keeps", () => {
    const run = createTwin(3);
    expect([run(["a"]), run(["a"])].map(({ sent, held }) => [sent, held])).to.deep.equal([
      [2, 0],
      [2, 0],
    ]);
  });
});
