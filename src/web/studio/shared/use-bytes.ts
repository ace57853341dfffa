/**
 * Hook that reads a file from the service and returns an object URL for it, for `img` and other elements. The URL of the file itself can
 * contain another host name than the page, and the browser would then not send the session cookie. The hook revokes the object URL when the
 * file changes or the component is removed.
 */
import { type RefObject, useEffect, useRef, useState } from "react";
import type { ApiClient } from "./api.js";

export interface LoadedFile {
  /** Content of the file; null until it is loaded. */
  blob: Blob | null;
  url: string | null;
  hasFailed: boolean;
}

/** Hook that loads a file. @param address URL of the file; null to load nothing */
export function useFileContent(api: ApiClient, address: string | null): LoadedFile {
  const [file, setFile] = useState<LoadedFile>({ blob: null, url: null, hasFailed: false });
  useEffect(() => {
    let url: string | null = null;
    let isOver = false;
    setFile({ blob: null, url: null, hasFailed: false });
    if (address === null) return;
    api.readBytes(address).then(
      (blob) => {
        if (isOver) return;
        url = URL.createObjectURL(blob);
        setFile({ blob, url, hasFailed: false });
      },
      () => isOver || setFile({ blob: null, url: null, hasFailed: true }),
    );
    return () => {
      isOver = true;
      if (url !== null) URL.revokeObjectURL(url);
    };
  }, [api, address]);
  return file;
}

/** Hook for an element that loads its file only when it is first visible. `wasVisible` then becomes true and stays true. */
export function useWasVisible<Element extends HTMLElement>(): [ref: RefObject<Element | null>, wasVisible: boolean] {
  const ref = useRef<Element>(null);
  const [wasVisible, setWasVisible] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      setWasVisible(true);
      observer.disconnect();
    });
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, wasVisible];
}
