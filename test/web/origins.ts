export const SHOP_ORIGIN = "https://shop.example";

/** Origins in different notations, some of them twice. */
export const UNNORMALIZED_ORIGINS = [
  "https://Shop.Example/",
  SHOP_ORIGIN,
  "https://shop.example:443",
  "http://localhost:5173",
  "https://bücher.example",
];

export const INVALID_ORIGINS: readonly unknown[] = [
  ...["*", "null", "", "shop.example", "http://shop.example", "https://shop.example/path", "https://*.shop.example"],
  ...["https://user@shop.example", "https://shop.example?a", "https://shop.example#a", "ftp://shop.example"],
  ...[
    "https://",
    "javascript:alert(1)",
    "https://shop.example\\x",
    "http://localhost.evil.example",
    "https://shop.example:99999",
  ],
  ...[1, null, {}, ["https://shop.example"], `https://${"a".repeat(300)}.example`],
];
