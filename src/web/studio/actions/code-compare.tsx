/** Shows the lines in which two versions of code differ. */
import { createTwoFilesPatch } from "diff";
import { PatchLines } from "./diff-view.js";

export function CodeComparison({ before, after }: { before: string; after: string }) {
  if (before === after) return <p className="hint">The code is the same.</p>;
  return (
    <section className="diff" aria-label="Differences in the code">
      <PatchLines patch={createTwoFilesPatch("before", "after", before, after)} />
    </section>
  );
}
