/**
 * Hook that reads bytes from the service and returns an object URL for elements that cannot send a credential. The URL is revoked when the
 * element is removed.
 */
import { type RefObject, useEffect, useRef, useState } from "react";
import type { Api } from "./api.js";

export interface LoadedBytes {
  /** The object URL; null while the bytes are loaded. */
  blob: Blob | null;
  url: string | null;
  failed: boolean;
}

/** @param address URL to read; null to read nothing */
export function useBytes(api: Api, address: string | null): LoadedBytes {
  const [bytes, setBytes] = useState<LoadedBytes>({ blob: null, url: null, failed: false });
  useEffect(() => {
    let url: string | null = null;
    let over = false;
    setBytes({ blob: null, url: null, failed: false });
    if (address === null) return;
    api.bytes(address).then(
      (blob) => {
        if (over) return;
        url = URL.createObjectURL(blob);
        setBytes({ blob, url, failed: false });
      },
      () => over || setBytes({ blob: null, url: null, failed: true }),
    );
    return () => {
      over = true;
      if (url !== null) URL.revokeObjectURL(url);
    };
  }, [api, address]);
  return bytes;
}

/** Becomes true when the element is close to the visible area, so that only visible files are requested. */
export function useNearView<Element extends HTMLElement>(): [ref: RefObject<Element | null>, seen: boolean] {
  const ref = useRef<Element>(null);
  const [isNear, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      setSeen(true);
      observer.disconnect();
    });
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, isNear];
}
