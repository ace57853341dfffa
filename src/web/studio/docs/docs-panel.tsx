/**
 * Side panel that shows a documentation page beside the page of Studio that it explains. The panel's code is loaded at its first use.
 */

import ExternalLink from "icon:external-link";
import X from "icon:x";
import * as Dialog from "@radix-ui/react-dialog";
import { type FormEvent, type MouseEvent, useEffect, useRef, useState } from "react";
import { resolveServiceUrl } from "../../service-address.js";
import { asApiError } from "../shared/api.js";
import { type DocsPage, type DocsSearchResult, readDocsPage, searchDocs, toDocsPath } from "./read-docs.js";

const ICON_PIXELS = 16;

interface DocsContentProps {
  page: DocsPage;
  /** Section to scroll to, as the fragment of a URL with "#"; empty for the top of the page. */
  hash: string;
  openPage: (path: string) => void;
}

function DocsContent({ page, hash, openPage }: DocsContentProps) {
  const contentBox = useRef<HTMLDivElement>(null);
  useEffect(() => {
    contentBox.current?.replaceChildren(...page.contentNodes);
  }, [page]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page scrolls to its section even if the section has the same name
  useEffect(() => {
    const section = hash === "" ? null : contentBox.current?.querySelector(`[id="${CSS.escape(hash.slice(1))}"]`);
    if (section) section.scrollIntoView();
    else contentBox.current?.parentElement?.scrollTo(0, 0);
  }, [page, hash]);
  const onClick = (event: MouseEvent) => {
    const link = (event.target as Element).closest("a");
    if (!link) return;
    event.preventDefault();
    const href = link.getAttribute("href") ?? "";
    const path = href.startsWith("#") ? href : toDocsPath(new URL(href, location.href));
    if (path === null) window.open(link.href, "_blank", "noreferrer");
    else openPage(path);
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the links in this element handle the keys
    // biome-ignore lint/a11y/noStaticElementInteractions: the links in this element handle the keys
    <div ref={contentBox} className="docs-text" onClick={onClick} />
  );
}

/** Result of a search that has ended: the sections that contain the words, or the error message of a failed search. */
type SearchOutcome = { hits: readonly DocsSearchResult[] } | { fault: string };

function SearchResults({ outcome, openPage }: { outcome: SearchOutcome; openPage: (path: string) => void }) {
  if ("fault" in outcome) {
    return (
      <p className="fault" role="alert">
        The search failed: {outcome.fault}
      </p>
    );
  }
  const { hits } = outcome;
  if (hits.length === 0) return <p className="hint">No section contains these words.</p>;
  return (
    <ul className="docs-hits">
      {hits.map(({ name, path }) => (
        <li key={path}>
          <button type="button" className="link" onClick={() => openPage(path)}>
            {name}
          </button>
        </li>
      ))}
    </ul>
  );
}

function useDocsPage(path: string, appId: number) {
  const [page, setPage] = useState<DocsPage | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    readDocsPage(path, appId).then(
      (newPage) => {
        if (isOver) return;
        setPage(newPage);
        setFault(null);
      },
      (error: unknown) => isOver || setFault(asApiError(error).message),
    );
    return () => {
      isOver = true;
    };
  }, [path, appId]);
  return { page, fault };
}

interface DocsPanelProps {
  /** Path of a documentation page, with a section as its fragment. */
  docsPath: string;
  appId: number;
  openAddress: (address: string) => void;
  onClose: () => void;
}

/**
 * Hook that returns the focus, when the panel closes, to the element that opened the panel. If that element was removed, moves the focus to
 * the content of the page. The dialog library does this only for modal dialogs.
 */
function useFocusReturn(): void {
  const [previousFocus] = useState(() => document.activeElement);
  useEffect(() => {
    return () => {
      const canReturnFocus =
        previousFocus instanceof HTMLElement && previousFocus.isConnected && previousFocus !== document.body;
      (canReturnFocus ? previousFocus : document.getElementById("content"))?.focus();
    };
  }, [previousFocus]);
}

export function DocsPanel({ docsPath, appId, openAddress, onClose }: DocsPanelProps) {
  useFocusReturn();
  const [path = "", section] = docsPath.split("#");
  const { page, fault } = useDocsPage(path, appId);
  const [query, setQuery] = useState("");
  const [searchOutcome, setSearchOutcome] = useState<SearchOutcome | null>(null);
  /** Number of searches and page changes so far. The panel ignores the result of a search if this number has grown since. */
  const stepCount = useRef(0);
  const openPage = (next: string) => {
    stepCount.current += 1;
    setSearchOutcome(null);
    openAddress(next.startsWith("#") ? path + next : next);
  };
  const searchAndShow = (event: FormEvent) => {
    event.preventDefault();
    stepCount.current += 1;
    const countAtStart = stepCount.current;
    const showOutcome = (outcome: SearchOutcome) => countAtStart === stepCount.current && setSearchOutcome(outcome);
    searchDocs(query).then(
      (hits) => showOutcome({ hits }),
      (error: unknown) => showOutcome({ fault: asApiError(error).message }),
    );
  };
  return (
    <Dialog.Root open modal={false} onOpenChange={(isOpen) => isOpen || onClose()}>
      <Dialog.Portal>
        <Dialog.Content
          className="docs-panel"
          aria-describedby={undefined}
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            (event.currentTarget as HTMLElement).querySelector<HTMLElement>(".docs-body")?.focus();
          }}
          // A click outside must not close the panel, because the person can use the page beside it.
          onInteractOutside={(event) => event.preventDefault()}
        >
          <div className="docs-head">
            <Dialog.Title>{searchOutcome ? "Search" : (page?.title ?? "Docs")}</Dialog.Title>
            <a
              className="quiet icon"
              href={resolveServiceUrl(docsPath).href}
              target="_blank"
              rel="noreferrer"
              aria-label="Open this page in a tab"
            >
              <ExternalLink size={ICON_PIXELS} aria-hidden />
            </a>
            <Dialog.Close className="quiet icon" aria-label="Close the docs">
              <X size={ICON_PIXELS} aria-hidden />
            </Dialog.Close>
          </div>
          <form className="row" onSubmit={searchAndShow}>
            <input
              type="search"
              className="grow"
              aria-label="Search the docs"
              placeholder="Search the docs"
              maxLength={200}
              value={query}
              onChange={(event) => setQuery(event.target.value)}
            />
          </form>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by the keyboard */}
          <section className="docs-body" aria-label="Documentation" tabIndex={0}>
            {fault && !searchOutcome && (
              <p className="fault" role="alert">
                {fault}
              </p>
            )}
            {searchOutcome && <SearchResults outcome={searchOutcome} openPage={openPage} />}
            {!searchOutcome && page && (
              <DocsContent page={page} hash={section ? `#${section}` : ""} openPage={openPage} />
            )}
            {!searchOutcome && !page && !fault && <p className="hint">Loading…</p>}
          </section>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
