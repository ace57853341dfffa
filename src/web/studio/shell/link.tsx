/** Link to a page of Studio: a plain link with a fragment, so that it can be opened in another tab. */
import { type LinkComponent, useRouter } from "@tanstack/react-router";
import type { ComponentProps } from "react";

type Props = ComponentProps<"a"> & { to: string; params?: object; search?: object };

export const Link = (({ to, params, search, ...props }: Props) => {
  // The router would take params that are not given from the URL of the open page.
  const place = { to, params: { appId: undefined, item: undefined, ...params }, search };
  return <a {...props} href={`#${useRouter().buildLocation(place).href}`} />;
}) as unknown as LinkComponent<"a">;
