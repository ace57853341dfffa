/** Hook with the state of the documentation panel: the open page, and the function that opens a page. */
import { lazy, Suspense, useCallback, useState } from "react";
import { importOrThrowLoadError } from "../shell/load-error.js";
import { PageBoundary } from "../shell/page-boundary.js";

const DocsPanel = lazy(async () => ({ default: (await importOrThrowLoadError(import("./docs-panel.js"))).DocsPanel }));

export function useDocs(appId: number) {
  const [address, setAddress] = useState<string | null>(null);
  const closeDocs = useCallback(() => setAddress(null), []);
  const panel = address !== null && (
    <PageBoundary>
      <Suspense fallback={null}>
        <DocsPanel {...{ docsPath: address, appId, onClose: closeDocs }} openAddress={setAddress} />
      </Suspense>
    </PageBoundary>
  );
  return { openDocs: setAddress, docsPanel: panel };
}
