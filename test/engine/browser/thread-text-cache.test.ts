/** Checks that the service knows which texts a page has stored. The service sends a text only if the page lacks it. */
import { expect } from "chai";
import { wrapInFunction } from "../../../src/engine/browser/pages/action-script.js";
import type { SentScript } from "../../../src/engine/browser/pages/in-page/messages.js";
import { ThreadTextCache } from "../../../src/engine/browser/pages/thread-text-cache.js";
import { runOf } from "./support.js";

/** Returns the text of a script as the service sends it. */
const named = (name: string, text: string) => `${text}\n//# sourceURL=${name}`;
const textOf = (content: string) => named(`${content}.js`, content.repeat(4));
const CHARACTERS_PER_TEXT = textOf("a").length;
const OWN = wrapInFunction({ name: "action.js", source: "own" });

/** Creates the service's cache and a simulated page. Returns a function that sends a run's texts from the cache to the page. */
function createStoredTextPair(maxCharacters: number) {
  const kept = new ThreadTextCache(maxCharacters);
  const page = new Map<string, string>();
  return (contents: readonly string[]) => {
    const packages = contents.map((content) => ({ name: `${content}.js`, source: content.repeat(4), content }));
    const scripts = kept.createRunArguments(runOf("own", { packages }))[2] as SentScript[];
    const evaluated = scripts.map(([, text, content]) => {
      if (text !== null && content !== "") page.set(content, text);
      return text ?? page.get(content);
    });
    const held = [...page.values()].reduce((sum, text) => sum + text.length, 0);
    return { evaluated, held, sent: scripts.filter(([, text]) => text !== null).length };
  };
}

describe("texts that a page stores", () => {
  it("are sent once; the author's own are sent each time", () => {
    const run = createStoredTextPair(4 * CHARACTERS_PER_TEXT);
    expect(run(["a", "b"]).sent).to.equal(3);
    expect(run(["b", "a"])).to.deep.include({ sent: 1, evaluated: [textOf("b"), textOf("a"), OWN] });
  });

  it("are stored once for each name of a content", () => {
    const kept = new ThreadTextCache();
    const sent = (name: string) => {
      const packages = [{ name, source: "1", content: "a" }];
      return (kept.createRunArguments(runOf("own", { packages }))[2] as SentScript[])[0]![1];
    };
    expect(["a.js", "b.js", "a.js"].map(sent)).to.deep.equal([named("a.js", "1"), named("b.js", "1"), null]);
  });

  it("are those that were listed, in any order and number, within the limit", () => {
    const run = createStoredTextPair(3 * CHARACTERS_PER_TEXT);
    const lists = [["a", "b", "c"], ["d", "a", "d"], ["a", "b", "c", "d", "e", "a"], ["e", "e"], [], ["c", "a"]];
    for (const list of [...lists, ...lists.toReversed(), ...lists]) {
      const { evaluated, held } = run(list);
      expect(evaluated).to.deep.equal([...list.map(textOf), OWN]);
      expect(held).to.be.at.most(3 * CHARACTERS_PER_TEXT);
    }
  });

  it("do not include one that is larger than the whole limit", () => {
    const run = createStoredTextPair(CHARACTERS_PER_TEXT - 1);
    expect([run(["a"]), run(["a"])].map(({ sent, held }) => [sent, held])).to.deep.equal([
      [2, 0],
      [2, 0],
    ]);
  });
});
