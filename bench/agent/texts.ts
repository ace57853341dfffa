/** Code of the actions that the scripted agent saves in its tasks. */

export const NIGHTLY_REPORT_CODE = `async function execute() {
  const orders = await Svc.DataSources.connectByName("orders");
  const total = (await orders.find()).reduce((sum, { data }) => sum + data.Price, 0);
  await Svc.Communicate.sendEmail({
    to: [{ email: "ann@example.com", name: "Ann" }],
    subject: "Orders of the day",
    text: "Total: " + total,
  });
  return { total };
}
`;

export const BOOKING_CODE = `async function execute({ payload }) {
  const { seat, name } = payload.request.body;
  const seats = await Svc.DataSources.connectByName("seats");
  await seats.insert({ Seat: seat, Name: name });
  return { booked: seat };
}
`;

export const INVOICE_CODE = {
  before: `async function execute({ payload }) {
  return payload.items
    .map((item) => item.price.toFixed(2))
    .join(", ");
}
`,
  after: `async function execute({ payload }) {
  return payload.items
    .map((item) => (item.price ?? 0).toFixed(2))
    .join(", ");
}
`,
};

export const THANKS_MODULE = `import { defineAction } from "svc";

export const config = defineAction({ active: true, triggers: [{ trigger: "manual" }] });

export async function execute(): Promise<string> {
  return "Thanks";
}
`;

export const LEAD_CODES = {
  insert: `async function execute() {
  const leads = await Svc.DataSources.connectByName("leads");
  await leads.insert({ Email: "ann@example.com", State: "new" });
}
`,
  react: `async function execute({ payload }) {
  const { dataSourceId, dataSourceEntryId } = payload.log;
  const leads = await Svc.DataSources.connect(dataSourceId);
  await leads.update(dataSourceEntryId, { State: "welcomed" });
}
`,
};

export const HANGING_CODE = `async function execute() {
  await new Promise((resolve) => setTimeout(resolve, 60000));
}
`;

export const TOTALS_CODE = `async function execute({ payload }) {
  const rows = Svc.CSV.parse(payload.text);
  return { total: rows.reduce((sum, row) => sum + Number(row.Price), 0) };
}
`;
