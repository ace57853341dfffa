/** Bytes of the service as an address of this page's own, for elements that cannot send a credential. Kept while they are shown. */
import { type RefObject, useEffect, useRef, useState } from "react";
import type { Api } from "./api.js";

export interface Bytes {
  /** null while they are on their way. */
  blob: Blob | null;
  url: string | null;
  failed: boolean;
}

/** @param address null: nothing is asked for */
export function useBytes(api: Api, address: string | null): Bytes {
  const [bytes, setBytes] = useState<Bytes>({ blob: null, url: null, failed: false });
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

/** Whether the element has come near the window: what nobody sees is not asked for. */
export function useSeen<Element extends HTMLElement>(): [ref: RefObject<Element | null>, seen: boolean] {
  const ref = useRef<Element>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      setSeen(true);
      watch.disconnect();
    });
    if (ref.current) watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return [ref, seen];
}
